"""The process that diagnoses runs no model: torch belongs to the children."""

from __future__ import annotations

import subprocess
import sys


def test_a_diagnosis_is_begun_without_torch() -> None:
    code = "import sys, sawbones.diagnosis; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "False"

"""A case as `sawbones run` records it, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from sawbones.schema import Run
from sawbones.scoring.cases import Case
from sawbones.store import read_run


def recorded(case: Case, folder: Path, limit_s: float) -> Run:
    """In `folder`, on one core; `subprocess.TimeoutExpired` where it takes longer."""
    out = str(folder / "run")
    command = [sys.executable, "-m", "sawbones", "run", "--quiet", "--out", out]
    subprocess.run(
        [*command, str(case.script), *case.argv],
        cwd=folder,
        capture_output=True,
        timeout=limit_s,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return read_run(out)

"""Runs a pinned test without pytest: `python -m sawbones.fixing.pinned_child FILE`.

Exit status as pytest has it: 0 passed, 1 failed, 2 it could not be run.
"""

from __future__ import annotations

import inspect
import runpy
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

PASSED, FAILED, NOT_RUN = 0, 1, 2


def main(file: str) -> int:
    try:
        names = runpy.run_path(file, run_name="pinned")
        (test,) = (v for k, v in names.items() if k.startswith("test_") and callable(v))
    except Exception:
        traceback.print_exc()
        return NOT_RUN
    return _outcome(test)


def _outcome(test: Callable[..., None]) -> int:
    try:
        with tempfile.TemporaryDirectory() as folder:
            wants_folder = "tmp_path" in inspect.signature(test).parameters
            test(**({"tmp_path": Path(folder)} if wants_folder else {}))
    except AssertionError:
        traceback.print_exc()
        return FAILED
    except Exception:
        traceback.print_exc()
        return NOT_RUN
    return PASSED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

"""The debugging session: observe, let the checks speak, run the experiments that decide, order what
is left.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sawbones.diagnosis.engine import Diagnosis, diagnose_run, diagnose_script
from sawbones.store import read_run

__all__ = ["Diagnosis", "diagnose", "diagnose_run", "diagnose_script"]


def diagnose(target: str | Path, *argv: str, **settings: Any) -> Diagnosis:
    """Diagnose a script (run in a scratch copy, with experiments) or a recorded run folder (checks
    only).

    Settings: seconds, steps, experiments, only, num_ranks, working_folder; see `sawbones diagnose
    --help`.
    """
    if next(Path(target).glob("run*.db"), None) is not None:  # of a second machine: no rank 0
        return diagnose_run(read_run(target), only=settings.get("only", "*"))
    return diagnose_script(str(target), tuple(argv), **settings)

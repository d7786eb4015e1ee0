"""Finding -> a change of the user's source, in the user's names, shown to heal.

source     one file as text, tree and byte positions
editing    edits of byte ranges; what overlaps or does not compile is refused
names      what the user's code calls its objects at a place
recipes    the recipes of the rooms (`faults/<layer>/<fault>/fix.py`), and what they are given
proposing  finding -> patches that nobody has run
verifying  patch -> the script with it, from the same seed, read by all checks
writing    patches -> files
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from sawbones import diagnosis
from sawbones.diagnosis import Diagnosis
from sawbones.fixing.proposing import Patch, propose, proposed
from sawbones.fixing.session import fix_diagnosed
from sawbones.fixing.verifying import Fixed

__all__ = ["Fixed", "Patch", "diagnose", "fix_diagnosed", "propose", "proposed"]


def diagnose(target: str | Path, *argv: str, **settings: Any) -> Diagnosis:
    """Diagnose a script (run in a scratch copy, with experiments) or a recorded run folder (checks
    only), with a patch for each finding whose fix is known. Nobody has run the patches.

    Settings: seconds, steps, experiments, only, num_ranks, working_folder; see `sawbones diagnose
    --help`.
    """
    return with_proposals(
        diagnosis.diagnose(target, *argv, **settings),
        Path(settings.get("working_folder") or Path.cwd()),
    )


def with_proposals(found: Diagnosis, root: Path) -> Diagnosis:
    return replace(found, report=proposed(found.report, found.run, root))

"""Looks at a recording while the script still runs: what is proven is told, and a run that is
known to be ill need not be watched to its end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from sawbones import faults, symptoms
from sawbones.diagnosis.ordering import acts, settle
from sawbones.schema import Finding, Run
from sawbones.schema.errors import SawbonesError
from sawbones.store import read_run

FIRST_LOOK_S = 1.0
SHARE = 0.07  # of a core, at most, for looking; on a busy machine the clock would say too much


class EarlyLook:
    """What two looks in a row say, with steps in between, is believed: half a recording may lack
    what speaks against a finding.
    """

    def __init__(self, only: str, tell: Callable[[Sequence[Finding]], None]) -> None:
        self._only = only
        self._tell = tell
        self._next = time.monotonic() + FIRST_LOOK_S
        self._steps = 0
        self._before: set[str] = set()
        self._seemed_ill = False
        self.is_ill = False  # whatever comes, the run will be called sick or unexplained

    def look(self, folder: Path) -> None:
        if time.monotonic() < self._next:
            return
        began = time.process_time()
        self._next = time.monotonic() + FIRST_LOOK_S
        try:
            run = read_run(folder)
        except (SawbonesError, OSError):  # nothing is there yet
            return
        if run.num_steps <= self._steps:
            return
        self._steps = run.num_steps
        found = faults.read(run, self._only).findings
        proven = [f for f in found if f.status == "proven"]
        self._tell([finding for finding in proven if finding.fault in self._before])
        self._before = {finding.fault for finding in proven}
        ill = _ill(run, found)
        self.is_ill, self._seemed_ill = ill and self._seemed_ill, ill
        took = time.process_time() - began
        self._next = time.monotonic() + max(1.0, took / SHARE)


def _ill(run: Run, found: Sequence[Finding]) -> bool:
    causes = settle(list(map(faults.as_far_as_known, found)))[0]
    if any(f.status in ("likely", "proven") and acts(f) for f in causes):
        return True
    return any(symptom.stands for symptom in symptoms.read(run).symptoms)

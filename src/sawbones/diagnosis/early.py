"""Looks at a recording while the script still runs, so that a cause is told when it is proven."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from sawbones import faults
from sawbones.schema import Finding
from sawbones.schema.errors import SawbonesError
from sawbones.store import read_run

FIRST_LOOK_S = 1.0
SHARE = 0.07  # of a core, at most, for looking; on a busy machine the clock would say too much
MOST_STEPS = 20_000  # a longer recording takes seconds to read: it is read at the end


class EarlyLook:
    """What two looks in a row call proven, with steps in between, is told: half a recording may
    lack what speaks against a finding.
    """

    def __init__(self, only: str, tell: Callable[[Sequence[Finding]], None]) -> None:
        self._only = only
        self._tell = tell
        self._next = time.monotonic() + FIRST_LOOK_S
        self._steps = 0
        self._before: set[str] = set()

    def look(self, folder: Path) -> None:
        if time.monotonic() < self._next:
            return
        began = time.process_time()
        self._next = time.monotonic() + FIRST_LOOK_S
        try:
            run = read_run(folder)
        except (SawbonesError, OSError):  # nothing is there yet
            return
        if run.num_steps > MOST_STEPS:
            self._next = float("inf")
            return
        if run.num_steps <= self._steps:
            return
        self._steps = run.num_steps
        proven = [f for f in faults.read(run, self._only).findings if f.status == "proven"]
        self._tell([finding for finding in proven if finding.fault in self._before])
        self._before = {finding.fault for finding in proven}
        took = time.process_time() - began
        self._next = time.monotonic() + max(1.0, took / SHARE)

"""The regression test of a finding, run on the script as it is and on the patched one.

It is the text that `sawbones pin` would write, run in a room of the bench, where a patched file
stands in the place of the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sawbones.diagnosis import templates
from sawbones.diagnosis.pinning import Pinned, pin
from sawbones.fixing.pinned_child import FAILED, PASSED
from sawbones.schema import Finding, Run
from sawbones.trials.bench import Bench

PATIENCE = 6.0  # a test records a run, and starts Python and torch once more
LEAST_SECONDS = 90.0
OUTCOMES = {PASSED: "passes", FAILED: "fails"}
NOT_RUN = "could not be run"


@dataclass(frozen=True)
class Kept:
    """What the pinned test of one finding says before and after a patch."""

    kind: str
    before: str
    after: str

    @property
    def tells_them_apart(self) -> bool:
        return (self.before, self.after) == (OUTCOMES[FAILED], OUTCOMES[PASSED])

    @property
    def text(self) -> str:
        if self.tells_them_apart:
            return "its test fails before and passes after"
        return f"its test {self.before} before and {self.after} after"

    def to_plain(self) -> dict[str, str]:
        return {"kind": self.kind, "before": self.before, "after": self.after}


class PinnedTests:
    """The tests of the findings of one run; each is run once on the script as it is."""

    def __init__(self, bench: Bench, run: Run, say: Callable[[str], None]) -> None:
        self.bench = bench
        self.run = run
        self.say = say
        self._pins: dict[str, Pinned] = {}
        self._before: dict[str, str] = {}

    def kept_out(self, finding: Finding, changed: Mapping[str, bytes]) -> Kept:
        """`changed`: the patched files."""
        fault = finding.fault
        if fault not in self._pins:
            self._pins[fault] = pin(finding, self.run, self.bench.patient.working_folder)
            self.say(f"{fault}: its regression test, without the patch and with it")
            self._before[fault] = self._outcome(self._pins[fault], {})
        pinned = self._pins[fault]
        if self._before[fault] != OUTCOMES[FAILED]:
            return Kept(pinned.kind, self._before[fault], "was not run")
        return Kept(pinned.kind, self._before[fault], self._outcome(pinned, changed))

    def _outcome(self, pinned: Pinned, changed: Mapping[str, bytes]) -> str:
        bench = self.bench
        if bench.interrupted or bench.seconds_left < 1:
            return NOT_RUN
        if pinned.kind == "plain" and not bench.isolation.is_kernel:
            # It starts the script by itself, and nothing would hold that back here.
            return NOT_RUN
        kept = bench.changed_files
        bench.changed_files = dict(changed)
        try:
            room = bench.room()
        finally:
            bench.changed_files = kept
        file = room.box / pinned.file_name
        text = templates.rooted(pinned.text, room.working_folder, room.box)
        file.write_text(text, encoding="utf-8")
        seconds = max(LEAST_SECONDS, PATIENCE * self.run.seconds)
        arguments = ["sawbones.fixing.pinned_child", str(file)]
        status = bench.run_module(arguments, room, seconds)
        return NOT_RUN if status is None else OUTCOMES.get(status, NOT_RUN)

"""Live warnings of `sawbones run`: the checks that need only a few steps speak while the training
goes on.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sawbones.observe.pacing import look_pace
from sawbones.observe.saying import say

if TYPE_CHECKING:
    from sawbones.observe.launch import Session
    from sawbones.observe.recorder import Recorder

# Steps after which the recording so far is read by all checks: a tenth of a second each, so where
# steps are short the later
# ones wait until the run is long enough for them.
LOOKS_AT = (5, 20, 50, 150, 500, 2000)


def attach_live_warnings(session: Session) -> None:
    warned: set[str] = set()
    known: set[tuple[str, bool]] = set()
    pace = look_pace()

    def ranks_differ(recorder: Recorder) -> bool:
        """Something new was found in the comparison of ranks since the last step."""
        found = recorder.facts.get("agreement", {}).get("found", {})
        new = {(kind, bool(row["drifted"])) for kind, row in found.items()} - known
        known.update(new)
        return any(drifted for _, drifted in new)

    def not_finite(recorder: Recorder) -> bool:
        """The loss has stopped being finite since the last step; said once, at once."""
        found = recorder.nonfinite_loss
        if found is None or "non-finite" in warned:
            return False
        warned.add("non-finite")
        say(
            f"sawbones: step {recorder.step}: non-finite: the loss is {found[1]} at step {found[0]}"
        )
        return True

    def look(recorder: Recorder) -> None:
        if recorder.rank != 0:
            return
        if not_finite(recorder):
            speak(recorder)
        planned = recorder.step in LOOKS_AT or pace.is_due
        if ranks_differ(recorder) or (
            planned and pace.allows(time.perf_counter() - recorder.began)
        ):
            began = time.process_time()
            speak(recorder)
            pace.paid(time.process_time() - began)

    def speak(recorder: Recorder) -> None:
        from sawbones.diagnosis import diagnose_run
        from sawbones.store import read_run

        recorder.write_census()
        recorder.writer.flush()
        for finding in diagnose_run(
            read_run(recorder.folder)
        ).report.findings:  # consequences folded into their causes
            if finding.status in ("likely", "proven") and finding.fault not in warned:
                warned.add(finding.fault)
                where = f" {finding.where[0]}" if finding.where else ""
                say(f"sawbones: step {recorder.step}: {finding.fault}{where}: {finding.title}")

    def begin(recorder: Recorder) -> None:
        recorder.listeners.append(look)
        if recorder.rank == 0:
            recorder.on_waiting.append(speak)

    session.on_ready.append(begin)

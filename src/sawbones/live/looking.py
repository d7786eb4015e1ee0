"""Live warnings of `sawbones run`: the checks that need only a few steps speak while the training
goes on.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawbones.live.alerts import Alerts
from sawbones.live.stopping import StopOn
from sawbones.observe.pacing import look_pace
from sawbones.observe.saying import say
from sawbones.schema.ranks import Agreement

if TYPE_CHECKING:
    from sawbones.observe.launch import Session
    from sawbones.observe.recorder import Recorder
    from sawbones.schema import Finding

# Steps after which the recording so far is read by all checks: a tenth of a second each, so where
# steps are short the later ones wait until the run is long enough for them.
LOOKS_AT = (5, 20, 50, 150, 500, 2000)


class Look:
    """Reads the recording now and then, and says each thing once."""

    def __init__(self, stop_on: StopOn, alerts: Alerts, quiet: bool) -> None:
        self._stop_on, self._alerts, self._quiet = stop_on, alerts, quiet
        self._warned: set[str] = set()
        self._drifted: set[tuple[str, bool]] = set()
        self._pace = look_pace()

    def begin(self, recorder: Recorder) -> None:
        recorder.listeners.append(self._step_passed)
        if recorder.rank == 0:
            recorder.on_waiting.append(self._speak)

    def _step_passed(self, recorder: Recorder) -> None:
        if recorder.rank != 0:
            return
        if self._not_finite(recorder):
            self._speak(recorder)
        planned = recorder.step in LOOKS_AT or self._pace.is_due
        if self._ranks_differ(recorder) or (
            planned and self._pace.allows(time.perf_counter() - recorder.began)
        ):
            began = time.process_time()
            self._speak(recorder)
            self._pace.paid(time.process_time() - began)

    def _ranks_differ(self, recorder: Recorder) -> bool:
        """Something new was found in the comparison of ranks since the last step."""
        agreement: Agreement | None = recorder.facts.get("agreement")
        found = agreement.found if agreement else {}
        new = {(kind, row.drifted) for kind, row in found.items()} - self._drifted
        self._drifted.update(new)
        return any(drifted for _, drifted in new)

    def _not_finite(self, recorder: Recorder) -> bool:
        """The loss has stopped being finite since the last step; said once, at once."""
        found = recorder.nonfinite_loss
        if found is None or "non-finite" in self._warned:
            return False
        self._warned.add("non-finite")
        text = f"the loss is {found[1]} at step {found[0]}"
        self._say(recorder, f"non-finite: {text}")
        self._alerts.send(_message(recorder, "symptom", "non-finite", text))
        if self._stop_on.nonfinite:
            recorder.stop_wanted = f"non-finite: {text}"
        return True

    def _speak(self, recorder: Recorder) -> None:
        from sawbones.diagnosis import diagnose_run
        from sawbones.store import read_run

        recorder.write_census()
        recorder.writer.flush()
        # consequences are folded into their causes
        for finding in diagnose_run(read_run(recorder.folder)).report.findings:
            if finding.status in ("likely", "proven") and finding.fault not in self._warned:
                self._warned.add(finding.fault)
                where = f" {finding.where[0]}" if finding.where else ""
                self._say(recorder, f"{finding.fault}{where}: {finding.title}")
                self._alerts.send(of_finding(recorder, finding))
                if self._stop_on.ends(finding):
                    recorder.stop_wanted = f"{finding.fault} ({finding.status})"

    def _say(self, recorder: Recorder, text: str) -> None:
        if not self._quiet:
            say(f"sawbones: step {recorder.step}: {text}")

    def ended(self, session: Session) -> None:
        """What shows only at the end is passed on as well: a crash, a finding of the whole run."""
        if session.recorder is None or session.rank != 0:
            return
        if self._alerts.targets:
            self._pass_on_the_rest(session.recorder, session.folder)
        self._alerts.finish()

    def _pass_on_the_rest(self, recorder: Recorder, folder: Path) -> None:
        from sawbones.diagnosis import diagnose_run
        from sawbones.store import read_run

        run = read_run(folder)
        if run.ending.kind == "exception":
            said = f"{run.ending.exception} at step {recorder.step}"
            self._alerts.send(_message(recorder, "symptom", "crash", said))
        for finding in diagnose_run(run).report.findings:
            if finding.status in ("likely", "proven") and finding.fault not in self._warned:
                self._alerts.send(of_finding(recorder, finding))


def of_finding(recorder: Recorder, finding: Finding) -> dict[str, Any]:
    where = str(finding.where[0]) if finding.where else ""
    told = _message(recorder, "finding", finding.fault, finding.title)
    return told | {"status": finding.status, "where": where}


def _message(recorder: Recorder, kind: str, name: str, text: str) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": name,
        "step": recorder.step,
        "rank": recorder.rank,
        "text": text,
        "run": str(recorder.folder),
    }


def attach_live_warnings(
    session: Session,
    stop_on: StopOn | None = None,
    alerts: Alerts | None = None,
    quiet: bool = False,
) -> None:
    look = Look(stop_on or StopOn(), alerts or Alerts(()), quiet)
    session.on_ready.append(look.begin)
    session.on_finish.append(look.ended)

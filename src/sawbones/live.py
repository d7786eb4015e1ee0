"""Live warnings of `sawbones run`: the checks that need only a few steps speak while the training goes on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sawbones.observe.launch import Session
    from sawbones.observe.recorder import Recorder

# Steps after which the recording so far is read by all checks. Cheap: it happens a handful of times per run.
LOOKS_AT = (5, 20, 50, 150, 500, 2000)


def attach_live_warnings(session: Session) -> None:
    shown: set[str] = set()
    known: set[tuple[str, bool]] = set()

    def ranks_differ(recorder: Recorder) -> bool:
        """Something new was found in the comparison of ranks since the last step."""
        found = recorder.facts.get("agreement", {}).get("found", {})
        new = {(kind, bool(row["drifted"])) for kind, row in found.items()} - known
        known.update(new)
        return any(drifted for _, drifted in new)

    def look(recorder: Recorder) -> None:
        if recorder.rank == 0 and (ranks_differ(recorder) or recorder.step in LOOKS_AT):
            speak(recorder)

    def speak(recorder: Recorder) -> None:
        from sawbones.diagnosis import diagnose_run
        from sawbones.store import read_run

        recorder.write_census()
        recorder.writer.flush()
        for finding in diagnose_run(read_run(recorder.folder)).report.findings:  # consequences folded into their causes
            if finding.status in ("likely", "proven") and finding.fault not in shown:
                shown.add(finding.fault)
                where = f" {finding.where[0]}" if finding.where else ""
                print(
                    f"sawbones: step {recorder.step}: {finding.fault}{where}: {finding.title}",
                    file=sys.stderr,
                    flush=True,
                )

    def begin(recorder: Recorder) -> None:
        recorder.listeners.append(look)
        if recorder.rank == 0:
            recorder.on_waiting.append(speak)

    session.on_ready.append(begin)

"""Live warnings of `sawbones run`: the checks that need only a few steps speak while the training goes on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sawbones.observe.launch import Session
    from sawbones.observe.recorder import Recorder

# Steps after which the recording so far is read by all checks. Cheap: it happens a handful of times per run.
LOOKS_AT = (5, 50, 500)


def attach_live_warnings(session: Session) -> None:
    shown: set[str] = set()

    def look(recorder: Recorder) -> None:
        if recorder.step not in LOOKS_AT or recorder.rank != 0:
            return
        from sawbones.checks import read
        from sawbones.store import read_run

        recorder.write_census()
        recorder.writer.flush()
        for finding in read(read_run(recorder.folder)).findings:
            if finding.status in ("likely", "proven") and finding.fault not in shown:
                shown.add(finding.fault)
                where = f" {finding.where[0]}" if finding.where else ""
                print(
                    f"sawbones: step {recorder.step}: {finding.fault}{where}: {finding.title}",
                    file=sys.stderr,
                    flush=True,
                )

    session.on_ready.append(lambda recorder: recorder.listeners.append(look))

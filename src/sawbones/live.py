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
    known: set[tuple[str, bool]] = set()

    def ranks_differ(recorder: Recorder) -> bool:
        """Something new was found in the comparison of ranks since the last step."""
        found = recorder.facts.get("agreement", {}).get("found", {})
        new = {(kind, bool(row["drifted"])) for kind, row in found.items()} - known
        known.update(new)
        return any(drifted for _, drifted in new)

    def look(recorder: Recorder) -> None:
        if recorder.rank != 0 or (not ranks_differ(recorder) and recorder.step not in LOOKS_AT):
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

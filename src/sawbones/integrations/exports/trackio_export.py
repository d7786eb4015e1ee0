"""Trackio: a project in a folder of its own; `TRACKIO_DIR=PATH trackio show`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sawbones.integrations.exports import NotExported, missing, rows
from sawbones.schema import Report, Run

PROJECT = "sawbones"
FOLDER = "TRACKIO_DIR"  # Trackio reads it once, when it is imported


def write(run: Run, report: Report, out: Path) -> Path:
    place = str(out.absolute())
    if sys.modules.get("trackio") is not None and os.environ.get(FOLDER) != place:
        raise NotExported(f"trackio writes elsewhere already: set {FOLDER}={place} and run again")
    os.environ[FOLDER] = place
    try:
        import trackio

        from sawbones.integrations.trackers.trackio_findings import begin, put
    except ImportError:
        raise missing("trackio") from None
    out.mkdir(parents=True, exist_ok=True)
    begin(PROJECT, Path(run.script).stem)
    for step, values in rows(run):
        trackio.log(values, step=step)
    put(report)
    trackio.finish()
    return out

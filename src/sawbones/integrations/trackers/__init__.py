"""Findings and symptoms for the tracker that a training already uses: one file per tracker, each
with `tell(report, place)`. Only on request: what is sent leaves the machine where the tracker does.

What is told are names, places, statuses and statistics, secrets masked, and no values of the data.
"""

from __future__ import annotations

import importlib
import importlib.util

from sawbones.masking import mask
from sawbones.schema import Report, Run
from sawbones.schema.errors import SawbonesError

TRACKERS = {
    "tensorboard": "text and markers in a log folder (tensorboard:FOLDER; default runs/sawbones)",
    "wandb": "alerts and the summary of the run that is active, else of a new one",
    "mlflow": "tags and a page of the run that is active, else of a new one",
    "trackio": "alerts and metrics of the run that is active, else of a new one",
}


class NotTold(SawbonesError):
    """No such tracker, or its package is missing."""


def known(to: str) -> tuple[str, str]:
    """(tracker, place) of `tensorboard:runs/exp1`. Asked before a training or a diagnosis begins:
    afterwards the time is spent.
    """
    tracker, _, place = to.partition(":")
    if tracker not in TRACKERS:
        raise NotTold(f"no tracker {tracker!r}. There are: {', '.join(TRACKERS)}")
    if importlib.util.find_spec(tracker) is None:
        raise NotTold(f"{tracker} is missing: pip install {tracker}")
    return tracker, place


def tell(report: Report, to: str) -> str:
    """Tells the tracker and says where that is to be seen."""
    tracker, place = known(to)
    try:
        module = importlib.import_module(f"{__name__}.{tracker}_findings")
    except ImportError as error:
        package = (error.name or tracker).partition(".")[0]
        raise NotTold(f"{package} is missing: pip install {package}") from None
    where: str = module.tell(report, place)
    return where


def tell_of_run(run: Run, to: str) -> None:
    """At the end of a training: whatever goes wrong with telling, the training's own end stands."""
    from sawbones.diagnosis import diagnose_run
    from sawbones.observe.saying import say

    try:
        say(f"sawbones: told {to.partition(':')[0]}: {tell(diagnose_run(run).report, to)}")
    except Exception as error:
        say(f"sawbones: {to} was not told: {error}")


def told(report: Report) -> list[tuple[str, str]]:
    """(name, text) of every finding and symptom, for places that show text."""
    lines = [
        (
            f.fault,
            f"{f.status}: {f.title}"
            + (f" ({f.where[0]})" if f.where else "")
            + (f". {f.fix.summary}" if f.fix else ""),
        )
        for f in report.findings
    ]
    lines += [(s.symptom, f"{s.cls}: {s.text}") for s in report.symptoms]
    return [(name, mask(text)) for name, text in lines]


def pressing(report: Report) -> list[tuple[str, str]]:
    """What is worth an alert: likely and proven causes."""
    named = {f"{f.fault}" for f in report.findings if f.status != "suspected"}
    return [(name, text) for name, text in told(report) if name in named]

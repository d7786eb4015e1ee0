"""What a score owes to relatives of evaluated rows among those trained on: the claimed number and
the honest one, over the same rows.
"""

from __future__ import annotations

from sawbones.evidence.limit import Limit
from sawbones.evidence.limits import evaluation as limits
from sawbones.evidence.readings import compared
from sawbones.schema import Evidence, Run
from sawbones.schema.held import Strangers


def tried_apart(run: Run, kind: str) -> list[Strangers]:
    """Trials of this kind ("group", "time") that came to an end."""
    return [t for t in run.strangers if t.kind == kind and t.outcome in ("fell", "kept")]


def fallen(run: Run, kind: str) -> Strangers | None:
    """The trial whose score fell far enough to be named."""
    for told in tried_apart(run, kind):
        if told.outcome == "fell" and _limit(told).reached_by(told.lower):
            return told
    return None


def fall(told: Strangers) -> Evidence:
    name = "accuracy" if told.metric == "classes" else "mean distance"
    which = (
        f"when no row of their {told.column} is trained on"
        if told.kind == "group"
        else f"when nothing from their time on ({told.column}) is trained on"
    )
    text = (
        f"{name} {told.claimed:.2f} over {told.rows} evaluated rows; {told.honest:.2f} "
        f"over the same rows {which} ({told.control:.2f} with as many other training rows "
        f"gone; worse by at least {told.lower:.2f})"
    )
    if told.one_answer:
        text += "; all rows of one have the same answer"
    return compared(
        text,
        told.lower,
        _limit(told),
        expected=0,
        signal="strangers",
    )


def _limit(told: Strangers) -> Limit:
    return limits.FALL_OF_ONE_ANSWER if told.one_answer else limits.STRANGERS_FALL

"""Solved at once

## What it measures
The loss between steps 10 and 30 is under a hundredth of that of a constant answer.

## Null
The best constant answer.

## What it may mean
The answer is among the inputs, or the task is trivial.
"""

from __future__ import annotations

from sawbones.evidence import NothingToJudge
from sawbones.evidence.limits import symptoms as limits
from sawbones.schema import Run, Symptom
from sawbones.stats.levels import level
from sawbones.stats.series import finite
from sawbones.stats.supervised import NotSupervised, supervised

CLASS = "notable"
NEEDS = ("steps", "losses")
CAUSES = ("model.causal-leak", "loss.*", "data.*", "pipeline.*", "evaluation.leak-*")
EARLY = slice(10, 30)


def look(run: Run) -> Symptom | None:
    try:
        task = supervised(run)
    except NotSupervised as why:
        raise NothingToJudge(str(why)) from None
    early = finite(task.losses[EARLY])
    if len(early) < 10:
        raise NothingToJudge(f"{run.num_steps} steps are too few to tell")
    low = level(early).mean
    if not limits.TOO_GOOD.kept_by(low / task.constant):
        return None
    return Symptom(
        "",
        CLASS,
        f"the loss is {low:.3g} after 10 to 30 steps already; a constant answer scores "
        f"{task.constant:.4g}",
        low,
        task.constant,
        (EARLY.start, EARLY.stop),
    )

"""Solved at once

## What it measures
The loss between steps 10 and 30 is under a hundredth of that of a constant answer.

## Null
The best constant answer.

## What it may mean
The answer is among the inputs, or the task is trivial.

## First commands
- `sawbones try causality train.py`: outputs that move with later tokens see the future.
- `sawbones try zero-inputs train.py`: no worse, the label came by another way.
- `sawbones try label-shift train.py`: best at shift 0 for a language model, it predicts its own
  input.
- `sawbones audit leaks` for rows on both sides of a split.
"""

from __future__ import annotations

from sawbones.evidence import NothingToJudge
from sawbones.evidence.limits import symptoms as limits
from sawbones.schema import Run, Symptom
from sawbones.stats.levels import level
from sawbones.stats.series import finite
from sawbones.stats.supervised import NotSupervised, supervised

CLASS = "notable"
CALLED = (
    "too good",
    "suspiciously good",
    "solved at once",
    "loss is zero",
    "perfect score",
    "accuracy 100",
    "too good to be true",
    "leak",
    "data leak",
    "leakage",
)
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

"""Training falls, evaluation rises

## What it measures
The evaluations by the loss that training uses, five at least: the best lies in the first 60 %, the
last two are a tenth above it, and training has fallen by a fifth since.

## Null
The best evaluation of the run itself.

## What it may mean
The model learns its samples by heart: too large, trained too long, too little data. Harmless where
the best checkpoint is kept.

## First commands
- Plot both losses by step and take the checkpoint at the best evaluation.
- `sawbones try shuffled-labels train.py`: training falls as far with labels that mean nothing, so
  the model has room to learn by heart.
- `sawbones audit leaks` and a look at duplicates first: an evaluation set that is partly trained on
  hides it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sawbones.evidence import NothingToJudge
from sawbones.evidence.limits import symptoms as limits
from sawbones.schema import Run, Symptom
from sawbones.stats.evaluations import validation_curve
from sawbones.stats.levels import level

Floats = npt.NDArray[np.float64]

CLASS = "notable"
CALLED = (
    "overfits",
    "overfit",
    "overfitting",
    "validation rises",
    "validation loss goes up",
    "memorises",
    "memorizes",
    "learned by heart",
)
NEEDS = ("steps", "losses", "validation")
CAUSES = ("evaluation.*", "data.*", "optimizer.*", "model.*", "pipeline.*")
NEARBY = 10  # steps whose loss is the training level at an evaluation


def look(run: Run) -> Symptom | None:
    steps, values, _ = validation_curve(run)
    return rises_after_its_best(steps, values, run.losses)


def rises_after_its_best(
    steps: npt.NDArray[np.int64], values: Floats, losses: Floats
) -> Symptom | None:
    """`steps`: at which row of the losses each evaluation was."""
    if not limits.EVALUATIONS_TO_TELL.reached_by(len(values)) or not np.isfinite(values).all():
        raise NothingToJudge(f"{len(values)} evaluations by the trained loss are too few")
    best, last = int(np.argmin(values)), float(np.median(values[-2:]))
    low = float(values[best])
    then, now = (
        level(losses[max(0, at - NEARBY) : max(at, 1)]).mean
        for at in (int(steps[best]), int(steps[-1]))
    )
    if (
        low <= 0
        or then <= 0
        or not limits.BEST_EARLY.kept_by(best / (len(values) - 1))
        or not limits.RISEN.reached_by(last / low)
        or not limits.TRAINED_ON.kept_by(now / then)
    ):
        return None
    return Symptom(
        "",
        CLASS,
        f"the evaluation loss is best at step {int(steps[best])} ({low:.4g}) and ends at "
        f"{last:.4g}, while training falls from {then:.4g} to {now:.4g}",
        last,
        low,
        (int(steps[best]), int(steps[-1])),
    )

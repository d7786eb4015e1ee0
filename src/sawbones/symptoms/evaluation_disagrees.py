"""Evaluation and training do not agree

## What it measures
The first evaluation after ten steps and more, by the loss that training uses, against the training
loss of the ten steps before it, before the samples can have been learned by heart: twice as high,
or half as high.

## Null
The training loss at the same time.

## What it may mean
Evaluation prepares its data in another way, runs in the wrong mode, averages wrongly, or sees
other data; far better than training: a leak, or a regulariser that is far too strong.

## First commands
- `sawbones try eval-mode train.py`: healed, evaluation runs in training mode.
- `sawbones try no-dropout train.py`: training catches up, then dropout was the difference and
  nothing is wrong.
- `sawbones try batch-independence train.py`: answers that change with their neighbours are batch
  statistics.
"""

from __future__ import annotations

import numpy as np

from sawbones.evidence import NothingToJudge
from sawbones.evidence.limits import symptoms as limits
from sawbones.schema import Run, Symptom
from sawbones.stats.evaluations import validation_curve
from sawbones.stats.levels import level
from sawbones.stats.protocol import epoch_starts
from sawbones.stats.supervised import NotSupervised, evaluated_targets, supervised

CLASS = "notable"
CALLED = (
    "evaluation disagrees",
    "train and validation disagree",
    "validation worse than training",
    "validation better than training",
    "validation loss lower than training",
    "train eval gap",
    "gap",
)
NEEDS = ("steps", "losses", "validation")
CAUSES = ("evaluation.*", "data.*", "pipeline.*", "model.*", "loop.train-in-eval-mode")
BEFORE = 10


def look(run: Run) -> Symptom | None:
    try:
        task = supervised(run)
        number = evaluated_targets(run, task.fn)
    except NotSupervised as why:
        raise NothingToJudge(str(why)) from None
    steps, values, _ = validation_curve(run)
    starts = epoch_starts(run)
    by_heart = starts[2] if len(starts) > 2 else run.num_steps  # from the third epoch on
    first = [i for i, step in enumerate(steps) if BEFORE <= step <= by_heart]
    if not first or not limits.TARGETS_TO_TELL.reached_by(number):
        raise NothingToJudge("no evaluation of 200 targets and more in the first two epochs")
    step, value = int(steps[first[0]]), float(values[first[0]])
    trained = level(task.losses[step - BEFORE : step]).mean
    ratio = value / trained if trained > 0 else np.nan
    if limits.EVALUATES_WORSE.reached_by(ratio):
        how = "above"
    elif limits.EVALUATES_BETTER.kept_by(ratio):
        how = "under"
    else:
        return None
    return Symptom(
        "",
        CLASS,
        f"at step {step} the evaluation loss is {value:.4g}, far {how} the training loss of the "
        f"steps before ({trained:.4g})",
        value,
        trained,
        (step,),
    )

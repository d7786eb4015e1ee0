"""The loss stands, then falls at once

## What it measures
At least a quarter of the run brings a tenth of the whole fall at most; then more than half of the
fall comes within 15 % of the run.

## Null
The shape of the run's own smoothed curve.

## What it may mean
A warm-up, units that were dead or saturated and come alive, a schedule that drops, a skill that is
found all at once. Healthy on tasks such as copying or arithmetic.

## First commands
- `sawbones try constant-lr train.py`: the plateau is gone, it was the schedule.
- `sawbones try default-init train.py`: gone, it was dead or saturated units.
"""

from __future__ import annotations

import numpy as np

from sawbones.evidence import NothingToJudge
from sawbones.evidence.limits import symptoms as limits
from sawbones.schema import Run, Symptom
from sawbones.stats.series import finite, running_median

CLASS = "notable"
CALLED = (
    "plateau then jump",
    "plateau",
    "sudden drop",
    "loss drops suddenly",
    "grokking",
    "phase transition",
    "late start",
)
NEEDS = ("steps", "losses")
CAUSES = ("model.*", "loss.*", "optimizer.*", "loop.*", "pipeline.*")


def look(run: Run) -> Symptom | None:
    losses = finite(run.losses)
    if not limits.STEPS_TO_TELL.reached_by(len(losses)):
        raise NothingToJudge(f"{len(losses)} losses are too few for a shape")
    smooth = running_median(losses, max(5, len(losses) // 20))
    first, least = float(np.median(smooth[:5])), float(smooth.min())
    fall = first - least
    if first <= 0 or not limits.WHOLE_FALL.reached_by(fall / first):
        return None
    fallen = (first - smooth) / fall
    stands = int(np.argmax(fallen > limits.PLATEAU_DROP.value))
    there = int(np.argmax(fallen > limits.PLATEAU_DROP.value + limits.JUMP_FALL.value))
    if not limits.PLATEAU.reached_by(stands / len(losses)) or not limits.JUMP_TIME.kept_by(
        (there - stands) / len(losses)
    ):
        return None
    return Symptom(
        "",
        CLASS,
        f"the loss stands at {first:.4g} for {stands} steps, then falls to {smooth[there]:.4g} "
        f"within {max(there - stands, 1)}",
        float(smooth[there]),
        first,
        (stands, there),
    )

"""The loss falls, hardly

## What it measures
After 100 steps and more the loss falls beyond its noise and is still within a tenth of that of a
constant answer.

## Null
The best constant answer, and the noise of the losses.

## What it may mean
A learning rate too small, a hard task, a long warm-up, gradients that vanish on their way.

## First commands
- `sawbones try lr=10 train.py`: far better, the rate was too low.
- `sawbones try constant-lr train.py`: far better, the schedule holds it down.
- `sawbones try standard-inputs train.py`: far better, the inputs are on a raw scale.
"""

from __future__ import annotations

from sawbones.evidence import NothingToJudge
from sawbones.evidence.limits import symptoms as limits
from sawbones.schema import Run, Symptom
from sawbones.stats.levels import apart, level, part
from sawbones.stats.supervised import NotSupervised, beginning, latest_fall, supervised

CLASS = "notable"
CALLED = (
    "learns slowly",
    "slow",
    "slow learning",
    "slow convergence",
    "converges slowly",
    "loss falls slowly",
    "takes too many epochs",
)
NEEDS = ("steps", "losses")
CAUSES = ("data.*", "pipeline.*", "model.*", "loss.*", "optimizer.*", "loop.*")


def look(run: Run) -> Symptom | None:
    try:
        task = supervised(run)
    except NotSupervised as why:
        raise NothingToJudge(str(why)) from None
    if not limits.STEPS_FOR_PACE.reached_by(run.num_steps):
        raise NothingToJudge(f"{run.num_steps} steps are too few to tell the pace")
    begin, end = beginning(task.losses), level(part(task.losses, 0.75, 1.0))
    gain = (task.constant - end.mean) / task.constant
    if not limits.SLOW_GAIN.kept_by(gain) or not limits.APART.reached_by(apart(begin, end)):
        return None
    if limits.GAIN_OVER_CONSTANT.kept_by(gain) and not limits.STILL_FALLING.reached_by(
        latest_fall(task.losses)
    ):
        return None  # it does not get past the constant answer: that is another symptom
    return Symptom(
        "",
        CLASS,
        f"the loss falls slowly ({begin.mean:.4g} to {end.mean:.4g} over {run.num_steps} steps; "
        f"a constant answer scores {task.constant:.4g})",
        end.mean,
        task.constant,
        (0, run.num_steps - 1),
    )

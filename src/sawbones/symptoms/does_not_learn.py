"""Training ends no better than a constant answer

## What it measures
The last quarter of the losses against the loss of the best constant answer: the entropy of the
labels that were seen, or the variance of the targets. It is told when even the upper end of what
was gained is under 4 %, over at least 40 steps, and the loss no longer falls. A loss that falls back
from where the run itself had thrown it is not excused by that: it ends above the loss of the
untrained model, by more than a constant answer costs. Whatever the task, a
run of 20 and more steps in which no weight changes does not learn. Where the target is what the
model is given and the loss has further terms (an autoencoder), the reconstruction is held against
the mean of all rows, over at least 200 steps.

## Null
The best constant answer, with the error of its estimate, and the noise of the losses. Where that
is not known (objectives written by hand, several optimizers, weighted or smoothed losses, targets
that are computed) it could not look, nor while the learning rate still warms up.

## What it may mean
Inputs and labels that do not belong together, outputs that do not depend on the inputs, gradients
that do not arrive, a learning rate far too small or far too large, a loss given the wrong thing. A
task may also hold nothing to learn, or need more steps than were seen.

## First commands
- `sawbones try overfit-one-batch train.py` parts the suspects in two: one batch that can be learned
  clears model, loss and optimizer, and leaves data and pipeline; one that cannot clears the data.
- `sawbones try zero-inputs train.py`: no worse without inputs, the inputs never reach the loss.
- `sawbones try initial-loss train.py`: a first loss far from that of an even guess is the loss or
  the initialisation.
"""

from __future__ import annotations

import numpy as np

from sawbones.evidence import NothingToJudge
from sawbones.evidence.limits import symptoms as limits
from sawbones.evidence.reconstructing import given_up
from sawbones.schema import Run, Symptom
from sawbones.stats.divergence import least_mean_end
from sawbones.stats.levels import level, part
from sawbones.stats.series import finite
from sawbones.stats.supervised import (
    STANDARD_ERRORS,
    NotSupervised,
    Supervised,
    beginning,
    latest_fall,
    supervised,
    warms_up_until,
)

CLASS = "ill"
CALLED = (
    "loss does not fall",
    "loss does not go down",
    "loss is flat",
    "loss stays",
    "loss stuck",
    "not learning",
    "does not learn",
    "does not converge",
    "not converging",
    "stuck at chance",
    "accuracy at chance",
    "constant loss",
    "plateau",
)
NEEDS = ("steps", "losses")
CAUSES = (
    "data.*",
    "pipeline.*",
    "model.*",
    "loss.*",
    "optimizer.*",
    "loop.*",
    "evaluation.collapsed-prediction",
)


def look(run: Run) -> Symptom | None:
    unmoved = _unmoved(run)
    if unmoved is not None:
        return unmoved
    try:
        task = supervised(run)
    except NotSupervised as why:
        copied = _gives_back_the_mean(run)
        if copied is not None:
            return copied
        raise NothingToJudge(str(why)) from None
    seen = len(finite(task.losses))
    if not limits.STEPS_TO_TELL.reached_by(seen):
        raise NothingToJudge(
            f"{seen} steps are too few to tell; {limits.STEPS_TO_TELL:.0f} are needed"
        )
    peak, grown = warms_up_until(run)
    if limits.WARMING_UP.reached_by(peak) and limits.RATE_GROWN.reached_by(grown):
        raise NothingToJudge("the learning rate was still warming up")
    return _no_better(run, task)


def _no_better(run: Run, task: Supervised) -> Symptom | None:
    begin, end = beginning(task.losses), level(part(task.losses, 0.75, 1.0))
    gain = (task.constant_at_most - end.mean + STANDARD_ERRORS * end.error) / task.constant
    if not limits.GAIN_OVER_CONSTANT.kept_by(gain):
        return None
    thrown = _thrown_and_not_back(task)
    if limits.STILL_FALLING.reached_by(latest_fall(task.losses)) and not thrown:
        return None
    if limits.RISE_OVER_START.reached_by((end.mean - begin.mean) / task.constant):
        return None  # it climbs: that is another symptom
    falls = limits.RISE_OVER_START.reached_by((begin.mean - end.mean) / task.constant)
    told = "falls no further than a constant answer" if falls else "does not fall"
    if thrown:
        first = float(finite(task.losses)[0])
        told = f"left its first value of {first:.4g} and has not come back"
    return Symptom(
        "",
        CLASS,
        f"the loss {told} ({begin.mean:.4g} to {end.mean:.4g} over {run.num_steps} steps; "
        f"a constant answer scores {task.constant:.4g})",
        end.mean,
        task.constant,
        (0, run.num_steps - 1),
    )


def _thrown_and_not_back(task: Supervised) -> bool:
    """One batch is all that is known of the untrained model: the margin is wide."""
    start = max(float(finite(task.losses)[0]), task.constant_at_most)
    above = (least_mean_end(task.losses) - start) / task.constant
    return limits.THROWN_OVER_START.passed_by(above)


def _gives_back_the_mean(run: Run) -> Symptom | None:
    """What the model is given is what it has to answer, and it answers the same to every row."""
    for term, end in given_up(run):
        return Symptom(
            "",
            CLASS,
            f"what is given back does not depend on what was given: the reconstruction ends at "
            f"{end:.4g} after {run.num_steps} steps; the mean of all rows scores "
            f"{term.same_for_all:.4g}",
            end,
            term.same_for_all,
            (0, run.num_steps - 1),
        )
    return None


def _unmoved(run: Run) -> Symptom | None:
    updates = run.steps["update_norm"]
    measured = updates[np.isfinite(updates) & (updates >= 0)]
    sizes = finite(run.steps["param_norm"])
    still = len(measured) and not measured.any() and len(set(sizes.tolist())) == 1
    if not still or not limits.STEPS_WITHOUT_UPDATE.reached_by(run.num_steps):
        return None
    return Symptom(
        "",
        CLASS,
        f"no weight changes over {run.num_steps} steps ({len(measured)} updates were measured, "
        "all of them zero)",
        0,
        None,
        (0, run.num_steps - 1),
    )

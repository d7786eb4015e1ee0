"""What a run has learned, in one sentence: the ground that the verdict `healthy` stands on."""

from __future__ import annotations

import math

from sawbones.evidence.limits import symptoms as limits
from sawbones.schema import Run
from sawbones.stats.evaluations import validation_curve
from sawbones.stats.levels import level, part
from sawbones.stats.series import finite
from sawbones.stats.supervised import STANDARD_ERRORS, NotSupervised, beginning, supervised


def progress(run: Run) -> str:
    losses = finite(run.losses)
    if not len(losses):
        return ""
    try:
        task = supervised(run)
    except NotSupervised as why:
        begin, end = beginning(losses).mean, level(part(losses, 0.75, 1.0)).mean
        return (
            f"The loss goes from {begin:.4g} to {end:.4g}. Whether that is beyond a constant "
            f"answer could not be told: {why}."
        )
    ending = level(part(task.losses, 0.75, 1.0))
    end = ending.mean
    unsure = STANDARD_ERRORS * math.hypot(ending.error, task.constant_error)
    if limits.GAIN_OVER_CONSTANT.kept_by((task.constant - end - unsure) / task.constant):
        return (
            f"The loss ends at {end:.4g} after {run.num_steps} steps, a constant answer scores "
            f"{task.constant:.4g}: too little was seen to tell whether it learns."
        )
    return (
        f"It learns beyond a constant answer ({task.constant:.4g} -> {end:.4g}{_evaluated(run)})."
    )


def _evaluated(run: Run) -> str:
    _, values, _ = validation_curve(run)
    return f", evaluation {float(values[-1]):.4g}" if len(values) else ""

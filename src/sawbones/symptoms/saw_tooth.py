"""The loss jumps at the boundaries of epochs

## What it measures
The last fifth of each epoch against the first fifth of the next one, over four epochs and more: the
jumps all go the same way, by 30 % of the loss level and by more than they scatter, beyond what
passes over the same number of steps in the middle of an epoch.

## Null
The change in the middle of the epochs, and the scatter of the jumps.

## What it may mean
Samples come in the same order in each epoch (easy ones first, sorted by class), or are learned by
heart from one epoch to the next, or something is reset at the boundary.

## First commands
- Look at the order of the labels in one epoch: sorted by class, it is the shuffling.
- The jump is there with shuffling too: something is reset at the boundary (scheduler, sampler,
  hidden state).
"""

from __future__ import annotations

import numpy as np

from sawbones.evidence import NothingToJudge
from sawbones.evidence.limits import symptoms as limits
from sawbones.schema import Run, Symptom
from sawbones.stats.levels import level
from sawbones.stats.protocol import epoch_starts

CLASS = "notable"
CALLED = (
    "saw tooth",
    "sawtooth",
    "periodic loss",
    "loss jumps every epoch",
    "epoch boundary",
    "zigzag",
    "oscillates by epoch",
)
NEEDS = ("steps", "losses", "batches")
CAUSES = ("pipeline.no-shuffle", "data.*", "loop.resume-incomplete", "optimizer.schedule")


def look(run: Run) -> Symptom | None:
    starts = [*epoch_starts(run), run.num_steps]
    lengths = np.diff(starts)
    whole = len(lengths) > 1 and len(set(lengths[:-1].tolist())) == 1
    if not whole or not limits.EPOCHS_TO_COMPARE.reached_by(len(lengths)):
        raise NothingToJudge("fewer than four epochs of one length were seen")
    if not limits.STEPS_PER_EPOCH.reached_by(int(lengths[0])):
        raise NothingToJudge(f"an epoch has {int(lengths[0])} steps: too few for a shape")
    losses, width = np.asarray(run.losses, np.float64), int(lengths[0]) // 5
    jumps = [
        _change(losses, at, width) - _change(losses, at - int(lengths[0]) // 2, width)
        for at in starts[1:-1]
    ]
    height = level(jumps)
    usual = float(np.median(np.abs(losses[np.isfinite(losses)])))
    if (
        len({jump > 0 for jump in jumps}) > 1
        or not usual
        or not limits.TOOTH.reached_by(abs(height.mean) / usual)
        or not limits.APART.reached_by(abs(height.mean) / height.error if height.error else None)
    ):
        return None
    way = "up" if height.mean > 0 else "down"
    return Symptom(
        "",
        CLASS,
        f"the loss jumps {way} by {abs(height.mean):.3g} at each of {len(jumps)} epoch boundaries "
        f"(its level is {usual:.3g})",
        height.mean,
        0,
        tuple(starts[1:-1]),
    )


def _change(losses: np.ndarray, at: int, width: int) -> float:
    return level(losses[at : at + width]).mean - level(losses[at - width : at]).mean

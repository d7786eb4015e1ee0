"""Single losses stand far out

## What it measures
Losses from step 10 on that stand ten robust deviations above the twenty before them, at least
double them, and lie above where the run began.

## Null
The noise of the steps before. Several optimizers mean a game, whose losses leap: it could not look.

## What it may mean
A bad batch, a far too long sequence, a learning rate at the edge, a loss that blows up on rare
values.

## First commands
- Look at the batch of that step: its largest value, its longest row, its labels.
- `sawbones try clip=1 train.py`: the spikes stay and nothing follows from them, one batch is bad
  and clipping holds it; `sawbones try lr=0.1 train.py`: they are gone, the rate was at the edge.
"""

from __future__ import annotations

import numpy as np

from sawbones.evidence import NothingToJudge
from sawbones.evidence.limits import symptoms as limits
from sawbones.schema import Run, Symptom
from sawbones.stats.protocol import share_the_run
from sawbones.stats.series import finite, start_level
from sawbones.stats.series import spikes as standing_out

CLASS = "notable"
CALLED = ("spikes", "spike", "loss spike", "sudden jumps", "outlier loss")
NEEDS = ("steps", "losses")
CAUSES = ("data.*", "pipeline.*", "model.*", "loss.*", "optimizer.*", "loop.*")
BEFORE = 20  # steps that a spike is compared with
AFTERMATH = 5  # steps that belong to the same spike


def look(run: Run) -> Symptom | None:
    if share_the_run(run):
        raise NothingToJudge("several optimizers share the run")
    losses = np.asarray(run.losses, np.float64)
    begin = start_level(losses)
    out = [
        step
        for step in standing_out(losses, BEFORE, limits.SPIKE.value)
        if limits.STEPS_BEFORE_SPIKE.reached_by(step)
        and np.isfinite(losses[step])
        and _is_high(losses, step, begin)
    ]
    heads = [s for i, s in enumerate(out) if i == 0 or s - out[i - 1] > AFTERMATH]
    if not heads:
        return None
    worst = max(heads, key=lambda step: losses[step])
    usual = float(np.median(finite(losses[max(0, worst - BEFORE) : worst])))
    count = f"{len(heads)} spikes" if len(heads) > 1 else "a spike"
    text = f"{count} in the loss, the highest {losses[worst]:.4g} after {usual:.4g} at step {worst}"
    return Symptom("", CLASS, text, float(losses[worst]), usual, tuple(heads[:20]))


def _is_high(losses: np.ndarray, step: int, begin: float) -> bool:
    usual = float(np.median(finite(losses[max(0, step - BEFORE) : step])))
    over = max(usual, begin, 0)
    return over > 0 and limits.SPIKE_HEIGHT.reached_by(float(losses[step]) / over)

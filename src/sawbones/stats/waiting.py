"""How long the loop of a run waits for its data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sawbones.schema import Run
from sawbones.stats.stalls import stalled_ms
from sawbones.trace.feeding import training_loader


@dataclass(frozen=True)
class Waiting:
    share: float  # of the time of a step, Sawbones' own work left out
    wait_ms: float
    low_ms: float  # a quarter of the steps waits less
    step_ms: float
    steps: int


def hears_operators(run: Run) -> bool:
    """Whether every operator was listened to, those that put samples together among them."""
    return run.operators_heard


def waiting(run: Run) -> Waiting | None:
    """Medians over the steps that Sawbones did not slow down; None when there are fewer than 20."""
    wait, spent, deep, own = (
        run.steps[name] for name in ("data_wait_ms", "step_ms", "deep", "watch_ms")
    )
    plain = (deep == 0) & np.isfinite(wait) & np.isfinite(spent) & (spent > 0)
    plain[:3] = False
    plain &= ~np.concatenate([[False], deep[:-1] > 0])  # what follows a deep step still pays for it
    if plain.sum() < 20:
        return None
    ours = np.nan_to_num(own[plain])
    waits, steps = wait[plain], spent[plain] - ours
    if training_loader(run) is None:
        # From the step to the next call of the model: what we do in between is no waiting, and what
        # the loop sleeps in writes is none for data.
        waits = np.maximum(waits - ours - stalled_ms(run)[plain], 0.0)
    share = np.median(waits / np.maximum(np.maximum(steps, waits), 1e-9))
    return Waiting(
        float(share),
        float(np.median(waits)),
        float(np.percentile(waits, 25)),
        float(np.median(steps)),
        len(waits),
    )

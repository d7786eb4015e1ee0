"""Linear warm-up followed by a cosine."""

import numpy as np
from numpy.typing import ArrayLike

from sawbones.oracles.arguments import Array, ValueOutOfRange, as_int64, require_range


def warmup_cosine(
    step: ArrayLike,
    *,
    peak_lr: float,
    warmup_steps: int,
    total_steps: int,
    min_lr: float = 0.0,
    from_zero: bool = False,
) -> Array:
    """The rate that optimizer step `step` (from 0; or each of an array of steps) uses; min_lr from
    total_steps on.

    Two conventions are in use for the warm-up. By default step 0 already moves, with peak_lr /
    warmup_steps, and the last warm-up step has the peak. With from_zero, step 0 has rate 0 (a
    wasted step) and the peak comes one step later.
    """
    place = as_int64("step", step)
    require_range("min_lr", min_lr, 0.0)
    require_range("peak_lr", peak_lr, min_lr)
    if not 0 <= warmup_steps < total_steps:
        raise ValueOutOfRange(
            f"warmup_steps is {warmup_steps}; expected 0 <= warmup_steps < total_steps = "
            f"{total_steps}"
        )
    if (place < 0).any():
        raise ValueOutOfRange(f"step is {place.min()}; expected 0 or more, steps count from 0")
    rising = peak_lr * (place + (0 if from_zero else 1)) / max(warmup_steps, 1)
    progress = np.clip((place - warmup_steps) / (total_steps - warmup_steps), 0.0, 1.0)
    falling = min_lr + 0.5 * (peak_lr - min_lr) * (1.0 + np.cos(np.pi * progress))
    return np.where(place < warmup_steps, rising, falling)

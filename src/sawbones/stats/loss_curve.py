"""The losses of a run as a few points, for a picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from sawbones.schema import Run

MOST_POINTS = 300


def loss_curve(run: Run, name: str) -> dict[str, Any]:
    """`steps` and `losses`: of each stretch the lowest and the highest; a loss that is not finite
    is None.
    """
    losses, steps = run.losses, run.steps.get("step", np.zeros(0))
    kept = np.arange(len(losses))
    if len(losses) > MOST_POINTS:
        low, high = np.where(np.isfinite(losses), losses, [[np.inf], [-np.inf]])
        stretches = np.array_split(kept, MOST_POINTS // 2)
        kept = np.unique(
            [at for s in stretches for at in (s[low[s].argmin()], s[high[s].argmax()])]
        )
    return {
        "name": name,
        "steps": [int(step) for step in steps[kept]],
        "losses": [float(f"{v:.5g}") if np.isfinite(v) else None for v in losses[kept]],
    }

"""What betas, eps and momentum mean for a run: lengths of averages and sizes of gradients."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sawbones.schema import Run

TINY = 1e-12


def memory_steps(group: Mapping[str, Any]) -> tuple[float, float]:
    """Momentum, or beta1, and how many steps its average goes back."""
    betas = group.get("betas")
    momentum = float(betas[0]) if betas else float(group.get("momentum") or 0.0)
    return momentum, 1.0 / max(1.0 - momentum, TINY)


def settling(group: Mapping[str, Any]) -> tuple[float, float, float] | None:
    """beta1, beta2, and the square of the first over the root of the second."""
    betas = group.get("betas")
    if not isinstance(betas, tuple | list) or len(betas) != 2:
        return None
    first, second = map(float, betas)
    return first, second, first**2 / max(math.sqrt(second), TINY)


def gradient_rms(run: Run, optimizer: int) -> float | None:
    """Root mean square of all gradients of one optimizer, at the median recorded step."""
    mine = [t for t in run.tensors if t.optimizer == optimizer]
    count = sum(t.numel for t in mine)
    norms = run.statistics.get("grad_l2")
    if norms is None or not count or not len(norms):
        return None
    held = norms[:, [t.index for t in mine]].astype(np.float64)
    squares = np.where(np.isfinite(held) & (held > 0), held, 0.0) ** 2
    return float(np.median(np.sqrt(squares.sum(axis=1) / count))) or None

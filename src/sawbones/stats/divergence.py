"""How a run goes wrong: when its loss leaves for good, what came first, the gradient or the loss,
and what it still pays at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sawbones.stats.levels import level, part
from sawbones.stats.series import end_level, finite
from sawbones.stats.supervised import STANDARD_ERRORS

Floats = npt.NDArray[np.float64]

LEAVES = 0.4  # of the first loss, above everything before
RECENT = 5  # measured updates
FAR_LOSS, FAR_NORM = 5.0, 20.0  # times what was before


def first_trouble(losses: npt.ArrayLike) -> int | None:
    """The first step whose loss is not finite, or above all before it by a good part of the first
    loss.
    """
    values = np.asarray(losses, np.float64)
    top, size = -math.inf, 0.0
    for step, value in enumerate(values):
        if not math.isfinite(value):
            return step
        if step == 0:
            size = max(abs(float(value)), 1e-12)
        elif value > top + LEAVES * size:
            return step
        top = max(top, float(value))
    return None


def recent_ratio(ratios: Floats, until: int | None) -> float:
    """Update over weights: the median of the last few that were measured before this step."""
    known = finite(ratios[:until])
    return float(np.median(known[-RECENT:])) if len(known) else math.nan


def mean_end(losses: npt.ArrayLike) -> float:
    """What the last quarter costs on average."""
    return level(part(losses, 0.75, 1.0)).mean


def least_mean_end(losses: npt.ArrayLike) -> float:
    """The same, by the lower end of the interval."""
    end = level(part(losses, 0.75, 1.0))
    return end.mean - STANDARD_ERRORS * end.error


def end_cost(losses: npt.ArrayLike) -> float:
    """The level at the end where a part of the batches costs far more than the others, too: a model
    whose weights went through the roof is right about most rows, at a loss of 0, and wrong about
    the rest at one of thousands. The median does not see those.
    """
    return max(end_level(losses), least_mean_end(losses))


@dataclass(frozen=True)
class Leap:
    """A gradient that stands out of those before it while the loss is still an ordinary one."""

    step: int
    norm: float
    usual: float
    level: float  # of the loss before
    worst: float  # of the loss right after; inf when it is not finite

    @property
    def factor(self) -> float:
        return self.norm / max(self.usual, 1e-30)


def gradient_leaps(norms: Floats, losses: Floats, factor: float, after: int = 6) -> list[Leap]:
    """Steps at which the norm grows by `factor` at an ordinary loss, and the loss leaves within a
    few steps.
    """
    first = finite(losses)
    if len(first) < 2:
        return []
    size = max(abs(float(first[0])), 1e-12)
    found: list[Leap] = []
    for step in range(1, min(len(norms), len(losses)) - 1):
        before, seen = finite(norms[max(0, step - 20) : step]), finite(losses[:step])
        if not math.isfinite(losses[step]) or not len(before) or len(seen) < step:
            break  # it is over: whatever came first has been passed
        usual, top = float(np.median(before)), float(np.max(seen))
        if math.isnan(norms[step]) or norms[step] < factor * usual:
            continue
        # A gradient that is far out at a loss that is hardly so is no bad batch either.
        near = FAR_LOSS * max(top, size) if norms[step] > FAR_NORM * usual else top + size
        if losses[step] > near:
            continue
        later = losses[step + 1 : step + 1 + after]
        worst = math.inf if np.any(~np.isfinite(later)) else float(np.max(later, initial=-math.inf))
        if worst > max(top, float(losses[step])) + size:
            found.append(Leap(step, float(norms[step]), usual, float(np.median(seen[-20:])), worst))
    return found

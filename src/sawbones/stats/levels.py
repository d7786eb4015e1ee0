"""How high a stretch of a series lies, and how sure that is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sawbones.stats.series import finite

Floats = npt.NDArray[np.float64]

NUM_BLOCKS = 5
OUTLYING = 4.0  # robust deviations: farther values count as if they lay there


@dataclass(frozen=True)
class Level:
    """The mean of a stretch and its standard error; NaN where nothing finite is in it."""

    mean: float
    error: float
    count: int


def level(values: npt.ArrayLike) -> Level:
    """Single outliers are drawn in first. Neighbours are not independent of each other, so the
    error is that of block means where that is the larger one.
    """
    known = finite(values)
    if not len(known):
        return Level(math.nan, math.nan, 0)
    middle = float(np.median(known))
    reach = OUTLYING * 1.4826 * float(np.median(np.abs(known - middle)))
    drawn = np.clip(known, middle - reach, middle + reach) if reach > 0 else known
    error = float(drawn.std(ddof=1)) / math.sqrt(len(drawn)) if len(drawn) > 1 else math.inf
    if len(drawn) >= 2 * NUM_BLOCKS:
        means = [float(block.mean()) for block in np.array_split(drawn, NUM_BLOCKS)]
        error = max(error, float(np.std(means, ddof=1)) / math.sqrt(NUM_BLOCKS))
    return Level(float(drawn.mean()), error, len(drawn))


def part(values: npt.ArrayLike, begin: float, end: float) -> Floats:
    """The stretch between two shares of a series: part(losses, 0.75, 1.0) is its last quarter."""
    array = np.asarray(values, np.float64)
    return array[round(begin * len(array)) : round(end * len(array))]


def apart(high: Level, low: Level) -> float:
    """How far one level lies above another, in standard errors of the difference."""
    error = math.hypot(high.error, low.error)
    gap = high.mean - low.mean
    return gap / error if error > 0 else math.copysign(math.inf, gap) if gap else 0.0

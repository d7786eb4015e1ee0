"""Mean and spread of several parts of the data: joined, compared, and whether they were
standardised together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

NEAR = 1e-5  # how near to 0 and 1 the moments of a standardised feature are


@dataclass(frozen=True, slots=True)
class Moments:
    """Of `count` values; the spread is the root of their mean squared distance from the mean."""

    count: int
    mean: float
    spread: float


def joint(parts: Sequence[Moments]) -> Moments:
    """Of all parts together, from those of each."""
    count = sum(p.count for p in parts)
    mean = sum(p.count * p.mean for p in parts) / max(1, count)
    square = sum(p.count * (p.spread**2 + (p.mean - mean) ** 2) for p in parts) / max(1, count)
    return Moments(count, mean, math.sqrt(max(0.0, square)))


def off_standard(m: Moments) -> float:
    """How far from mean 0 and spread 1, whichever way the spread was divided (by n or by n - 1)."""
    unbiased = m.spread * math.sqrt(m.count / (m.count - 1)) if m.count > 1 else m.spread
    return max(abs(m.mean), min(abs(m.spread - 1), abs(unbiased - 1)))


def standardised_together(
    own: Moments, others: Sequence[Moments], near: float = NEAR
) -> Moments | None:
    """The joint moments, when they are 0 and 1 and those of the first part alone are not."""
    parts = [own, *others]
    if not others or not all(math.isfinite(p.mean) and math.isfinite(p.spread) for p in parts):
        return None
    both = joint(parts)
    return both if off_standard(both) <= near and off_standard(own) > 5 * near else None


def spread_factor(spread: Any, usual: Any) -> Any:
    """By how much two spreads differ, as a factor of at least 1; numbers or arrays."""
    ratio = np.maximum(spread, 1e-12) / np.maximum(usual, 1e-12)
    return np.maximum(ratio, 1 / ratio)


def standard_distance(mean: Any, usual_mean: Any, usual_spread: Any) -> Any:
    """Distance of two means in spreads of the usual one; numbers or arrays."""
    return np.abs(mean - usual_mean) / np.maximum(usual_spread, 1e-12)

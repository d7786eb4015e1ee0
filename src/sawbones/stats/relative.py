"""How far two values that should be the same lie apart."""

from __future__ import annotations

import math


def relative_difference(value: float, expected: float) -> float:
    """In units of the expected value; 0 where both are zero."""
    if value == expected:
        return 0.0
    return abs(value - expected) / abs(expected) if expected else math.inf

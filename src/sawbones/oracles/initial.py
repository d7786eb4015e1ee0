"""Variances that keep signals (He) or signals and gradients (Glorot) at one scale through a layer
at initialisation.
"""

import math
from collections.abc import Sequence
from typing import Literal

from sawbones.oracles.arguments import ShapeMismatch, require_one_of, require_range


def fans(weight_shape: Sequence[int]) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight stored as in torch: (out, in, *kernel). A transposed
    convolution swaps them.
    """
    shape = tuple(weight_shape)
    if len(shape) < 2 or min(shape) < 1:
        raise ShapeMismatch(
            f"weight_shape is {shape}; expected at least 2 axes of size 1 or more = (out, "
            "in, *kernel)"
        )
    receptive = math.prod(shape[2:])
    return shape[1] * receptive, shape[0] * receptive


def glorot_variance(weight_shape: Sequence[int], *, gain: float = 1.0) -> float:
    """gain^2 * 2 / (fan_in + fan_out): fan_in keeps the forward scale, fan_out the backward one,
    this is between.
    """
    require_range("gain", gain, 0.0)
    fan_in, fan_out = fans(weight_shape)
    return gain**2 * 2.0 / (fan_in + fan_out)


def he_variance(
    weight_shape: Sequence[int],
    *,
    negative_slope: float = 0.0,
    mode: Literal["fan_in", "fan_out"] = "fan_in",
) -> float:
    """2 / ((1 + negative_slope^2) * fan): a leaky ReLU passes on (1 + slope^2) / 2 of the second
    moment.
    """
    require_one_of("mode", mode, ("fan_in", "fan_out"))
    fan_in, fan_out = fans(weight_shape)
    return 2.0 / ((1.0 + negative_slope**2) * (fan_in if mode == "fan_in" else fan_out))


def uniform_bound(variance: float) -> float:
    """b such that the uniform distribution on [-b, b] has this variance, b^2 / 3."""
    require_range("variance", variance, 0.0)
    return math.sqrt(3.0 * variance)

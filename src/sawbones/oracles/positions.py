"""Sinusoidal and rotary positions."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sawbones.oracles.arguments import (
    Array,
    ShapeMismatch,
    as_float64,
    require_axes,
    require_one_of,
    require_range,
    require_shape,
)

RotaryLayout = Literal["interleaved", "halves"]


def angles(positions: ArrayLike, width: int, *, base: float = 10_000.0) -> Array:
    """(T, width / 2): position t times base^(-2i / width), for pair i."""
    place_T = as_float64("positions", positions)
    if place_T.ndim != 1:
        raise ShapeMismatch(f"positions has shape {place_T.shape}; expected 1 axis = (positions,)")
    if width < 2 or width % 2:
        raise ShapeMismatch(
            f"width is {width}; expected an even number of at least 2, since features turn in pairs"
        )
    require_range("base", base, 0.0, open_low=True)
    return place_T[:, None] * base ** (-np.arange(0, width, 2) / width)


def sinusoidal(num_positions: int, width: int, *, base: float = 10_000.0) -> Array:
    """(T, width): sines in the even columns, cosines in the odd ones."""
    turn = angles(np.arange(num_positions), width, base=base)
    table = np.empty((num_positions, width))
    table[:, 0::2], table[:, 1::2] = np.sin(turn), np.cos(turn)
    return table


def rotary(
    x: ArrayLike,
    positions: ArrayLike,
    *,
    base: float = 10_000.0,
    layout: RotaryLayout = "interleaved",
) -> Array:
    """Turns each pair of features of x (..., T, width) by its position's angle; applied to queries
    and keys alike.

    layout says which features form pair i: "interleaved" (2i, 2i + 1), as in the paper, or "halves"
    (i, i + width / 2), as in the Llama port most checkpoints follow. Weights trained with one fail
    under the other.
    """
    require_one_of("layout", layout, ("interleaved", "halves"))
    values = as_float64("x", x)
    require_axes("x", values, 2, "(..., positions, width)")
    num_positions, width = values.shape[-2:]
    place = as_float64("positions", positions)
    require_shape("positions", place, (num_positions,), "(positions,), axis -2 of x")
    turn = angles(place, width, base=base)
    if layout == "interleaved":
        first, second = slice(0, None, 2), slice(1, None, 2)
    else:
        first, second = slice(0, width // 2), slice(width // 2, None)
    a, b = values[..., first], values[..., second]
    turned = np.empty_like(values)
    turned[..., first] = a * np.cos(turn) - b * np.sin(turn)
    turned[..., second] = a * np.sin(turn) + b * np.cos(turn)
    return turned

"""A gradient check by central finite differences in float64, for any function.

    report = check_gradient(lambda w: (w**2).sum(), gradients=[2 * w], inputs=[w])
    report.max_relative_error < 1e-6

The difference quotient (f(x + h) - f(x - h)) / 2h errs by about h^2 from curvature and 1e-16 / h
from rounding; h near the cube root of 1e-16 balances the two at about 1e-10. An entry whose
gradient is far smaller than the largest one is thus known only to a share of that largest one, and
the relative error of entry i is

    |analytic_i - numeric_i| / max(|analytic_i|, |numeric_i|, floor * max_j |numeric_j|)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sawbones.oracles.arguments import (
    Array,
    ShapeMismatch,
    ValueOutOfRange,
    as_float64,
    require_range,
    require_shape,
)

_STEP = float(np.cbrt(np.finfo(np.float64).eps))
_FLOOR = 1e-3
# The one-sided slopes of a smooth function differ by about h times its curvature, 1e-5; across a
# kink by the jump.
_KINK = 1e-2


@dataclass(frozen=True)
class GradientCheck:
    """The worst entry over all inputs. kink: the slopes left and right of it differ, so compare at
    another point.
    """

    max_relative_error: float
    input_index: int
    entry: tuple[int, ...]
    analytic: float
    numeric: float
    kink: bool


def check_gradient(
    function: Callable[..., Any],
    gradients: Sequence[ArrayLike],
    inputs: Sequence[ArrayLike],
    *,
    upstream: ArrayLike | None = None,
    step: float = _STEP,
    floor: float = _FLOOR,
) -> GradientCheck:
    """Compares gradients, one array per input, with finite differences of function(*inputs).

    For a function with an array output, upstream (of the output's shape) stands for the gradient of
    what follows it, so that what is differentiated is the sum of upstream * output. step is taken
    as it is for inputs up to 1 and in proportion to larger ones; a function that bends on a scale
    far below 1 needs a smaller one.
    """
    if len(gradients) != len(inputs):
        raise ShapeMismatch(
            f"gradients has {len(gradients)} arrays; expected {len(inputs)}, one per input"
        )
    require_range("floor", floor, 0.0, open_low=True)
    points = [as_float64(f"inputs[{i}]", x) for i, x in enumerate(inputs)]
    analytic = [as_float64(f"gradients[{i}]", g) for i, g in enumerate(gradients)]
    for i, (point, gradient) in enumerate(zip(points, analytic, strict=True)):
        require_shape(f"gradients[{i}]", gradient, point.shape, f"the shape of inputs[{i}]")
    if not any(point.size for point in points):
        raise ShapeMismatch(
            f"inputs have shapes {[p.shape for p in points]}; expected at least one number to vary"
        )

    worst: GradientCheck | None = None
    for i, gradient in enumerate(analytic):
        numeric, kinks = _differentiate(function, points, i, upstream, step)
        if not gradient.size:
            continue
        errors = relative_errors(gradient, numeric, floor=floor)
        at = tuple(int(k) for k in np.unravel_index(int(errors.argmax()), errors.shape))
        if worst is None or errors[at] > worst.max_relative_error:
            worst = GradientCheck(
                float(errors[at]),
                i,
                at,
                float(gradient[at]),
                float(numeric[at]),
                kink=bool(kinks[at]),
            )
    assert worst is not None
    return worst


def numerical_gradient(
    function: Callable[..., Any],
    inputs: Sequence[ArrayLike],
    *,
    upstream: ArrayLike | None = None,
    step: float = _STEP,
) -> list[Array]:
    points = [as_float64(f"inputs[{i}]", x) for i, x in enumerate(inputs)]
    return [_differentiate(function, points, i, upstream, step)[0] for i in range(len(points))]


def relative_errors(analytic: ArrayLike, numeric: ArrayLike, *, floor: float = _FLOOR) -> Array:
    """Entry by entry; 0 where both are 0, infinite where either is not finite."""
    a, n = as_float64("analytic", analytic), as_float64("numeric", numeric)
    require_shape("numeric", n, a.shape, "the shape of analytic")
    finite = np.isfinite(a) & np.isfinite(n)
    a_finite, n_finite = np.where(finite, a, 0.0), np.where(finite, n, 0.0)
    scale = np.maximum(np.abs(a_finite), np.abs(n_finite))
    scale = np.maximum(scale, floor * np.abs(n_finite).max(initial=0.0))
    gap = np.abs(a_finite - n_finite)
    return np.where(finite, np.divide(gap, scale, out=np.zeros_like(gap), where=gap > 0.0), np.inf)


def _differentiate(
    function: Callable[..., Any],
    points: Sequence[Array],
    index: int,
    upstream: ArrayLike | None,
    step: float,
) -> tuple[Array, Array]:
    """The central differences by input number index, and where the two one-sided slopes
    disagree.
    """
    require_range("step", step, 0.0, open_low=True)

    def value_at(moved: Array) -> float:
        # Copies: a function that writes into its arguments must not move the point it is
        # differentiated at.
        arguments = [moved.copy() if i == index else p.copy() for i, p in enumerate(points)]
        return _contract(function(*arguments), upstream)

    point = points[index]
    here = value_at(point)
    again = value_at(point)
    if here != again and not (np.isnan(here) and np.isnan(again)):
        raise ValueOutOfRange(
            f"function gave {here} and then {again} for the same inputs; expected a "
            "deterministic function. "
            "Switch dropout and other randomness off"
        )
    numeric, kinks = np.zeros_like(point), np.zeros(point.shape)
    for at in np.ndindex(point.shape):
        h = step * max(1.0, abs(float(point[at])))
        moved = point.copy()
        moved[at] = point[at] + h
        up, width_up = value_at(moved), float(moved[at] - point[at])
        moved[at] = point[at] - h
        down, width_down = value_at(moved), float(point[at] - moved[at])
        with np.errstate(invalid="ignore"):
            # The widths as they came out after rounding, not h itself.
            numeric[at] = (np.float64(up) - down) / (width_up + width_down)
            right, left = (np.float64(up) - here) / width_up, (np.float64(here) - down) / width_down
            kinks[at] = abs(right - left) > _KINK * max(abs(right), abs(left), 1e-6)
    return numeric, kinks


def _contract(output: Any, upstream: ArrayLike | None) -> float:
    dtype = getattr(output, "dtype", None)
    values = as_float64("function output", output)
    if (
        dtype is not None
        and np.asarray(output).dtype.kind == "f"
        and np.asarray(output).dtype.itemsize < 8
    ):
        raise ValueOutOfRange(
            f"function returned {dtype}; expected float64, since differences in {dtype} "
            "are mostly rounding. "
            "Convert parameters and inputs to float64 first"
        )
    if upstream is None:
        if values.size != 1:
            raise ShapeMismatch(
                f"function output has shape {values.shape}; expected one number, or "
                "upstream of that shape"
            )
        return float(values.reshape(()))
    weights = as_float64("upstream", upstream)
    require_shape("upstream", weights, values.shape, "the shape of the function's output")
    return float((weights * values).sum())

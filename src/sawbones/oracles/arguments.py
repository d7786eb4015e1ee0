"""What every reference does with its arguments first: read them as float64 and say what does not
fit.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sawbones.schema.errors import SawbonesError

Array: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]


class ShapeMismatch(SawbonesError):
    """An array's shape does not fit the other arguments."""


class ValueOutOfRange(SawbonesError):
    """An argument has the right shape and a value, dtype or name that the reference is not defined
    for.
    """


def read_array(name: str, value: ArrayLike) -> NDArray[np.generic]:
    # A torch tensor that needs grad, lives on a GPU or is bfloat16 fails inside NumPy, each with
    # its own kind of error.
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        kind = type(value).__name__
        raise ValueOutOfRange(
            f"{name} is a {kind} that NumPy cannot read ({str(error).splitlines()[0]}); "
            "expected a plain array. "
            "From a torch tensor t: t.detach().double().cpu().numpy()"
        ) from error


def as_float64(name: str, value: ArrayLike) -> Array:
    array = read_array(name, value)
    if array.dtype.kind not in "biuf":
        raise ValueOutOfRange(f"{name} has dtype {array.dtype}; expected real numbers")
    return array.astype(np.float64, copy=False)


def as_int64(name: str, value: ArrayLike) -> Ints:
    array = read_array(name, value)
    if array.dtype.kind not in "iu":
        raise ValueOutOfRange(f"{name} has dtype {array.dtype}; expected integers")
    return array.astype(np.int64, copy=False)


def as_bool(name: str, value: ArrayLike) -> Bools:
    # Additive 0/-inf masks and 0/1 integer masks are refused, not guessed at: 0 means opposite
    # things in the two.
    array = read_array(name, value)
    if array.dtype.kind != "b":
        raise ValueOutOfRange(f"{name} has dtype {array.dtype}; expected bool, True = may attend")
    return array.astype(np.bool_, copy=False)


def require_shape(
    name: str, array: NDArray[np.generic], expected: Sequence[int], meaning: str
) -> None:
    """meaning names the axes, as in "(batch, classes)", and ends the message."""
    if array.shape != tuple(expected):
        raise ShapeMismatch(
            f"{name} has shape {array.shape}; expected {tuple(expected)} = {meaning}"
        )


def require_axes(name: str, array: NDArray[np.generic], at_least: int, meaning: str) -> None:
    if array.ndim < at_least:
        raise ShapeMismatch(
            f"{name} has shape {array.shape}; expected at least {at_least} axes = {meaning}"
        )


def require_one_of(name: str, value: object, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ValueOutOfRange(f"{name} is {value!r}; expected one of {', '.join(allowed)}")


def require_range(
    name: str,
    value: float,
    low: float,
    high: float = np.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> None:
    """Also refuses NaN, which no comparison holds for."""
    above = value > low if open_low else value >= low
    below = value < high if open_high else value <= high
    if not (above and below):
        left, right = "(" if open_low else "[", ")" if open_high or high == np.inf else "]"
        raise ValueOutOfRange(
            f"{name} is {value}; expected a number in {left}{low:g}, {high:g}{right}"
        )

"""LayerNorm, BatchNorm, GroupNorm and RMSNorm. All normalise by the biased variance (divide by
n).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sawbones.oracles.arguments import (
    Array,
    ShapeMismatch,
    ValueOutOfRange,
    as_float64,
    require_axes,
    require_range,
    require_shape,
)


def layer_norm(
    x: ArrayLike,
    normalized_shape: Sequence[int],
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    eps: float = 1e-5,
) -> Array:
    """Each example by the mean and variance of its own last axes, those of normalized_shape."""
    values, axes = _read_trailing(x, normalized_shape)
    require_range("eps", eps, 0.0)
    normal = _standardize(values, axes, eps)
    return normal * _read_affine("weight", weight, normalized_shape, 1.0) + _read_affine(
        "bias", bias, normalized_shape, 0.0
    )


@dataclass(frozen=True)
class LayerNormGradients:
    x: Array
    weight: Array
    bias: Array


def layer_norm_gradients(
    x: ArrayLike,
    normalized_shape: Sequence[int],
    weight: ArrayLike | None,
    upstream: ArrayLike,
    *,
    eps: float = 1e-5,
) -> LayerNormGradients:
    """upstream is d loss / d output, of the output's shape. docs/explanation/derivations.md derives
    the three terms of the gradient by x.
    """
    values, axes = _read_trailing(x, normalized_shape)
    require_range("eps", eps, 0.0)
    dy = as_float64("upstream", upstream)
    require_shape("upstream", dy, values.shape, "the shape of x")
    normal = _standardize(values, axes, eps)
    spread = np.sqrt(values.var(axis=axes, keepdims=True) + eps)
    dn = dy * _read_affine("weight", weight, normalized_shape, 1.0)
    dx: Array = (
        dn
        - dn.mean(axis=axes, keepdims=True)
        - normal * (dn * normal).mean(axis=axes, keepdims=True)
    ) / spread
    leading = tuple(range(values.ndim - len(axes)))
    return LayerNormGradients(dx, (dy * normal).sum(axis=leading), dy.sum(axis=leading))


def rms_norm(
    x: ArrayLike, normalized_shape: Sequence[int], weight: ArrayLike | None = None, *, eps: float
) -> Array:
    """eps has no default: torch's follows the dtype of the input, published models use 1e-5 or
    1e-6.
    """
    values, axes = _read_trailing(x, normalized_shape)
    require_range("eps", eps, 0.0)
    normal: Array = values / np.sqrt((values**2).mean(axis=axes, keepdims=True) + eps)
    return normal * _read_affine("weight", weight, normalized_shape, 1.0)


def group_norm(
    x: ArrayLike,
    num_groups: int,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    eps: float = 1e-5,
) -> Array:
    """x is (batch, channels, ...); each example by the statistics of each group of neighbouring
    channels.
    """
    values = as_float64("x", x)
    require_axes("x", values, 2, "(batch, channels, ...)")
    require_range("eps", eps, 0.0)
    num_examples, num_channels = values.shape[:2]
    if num_groups < 1 or num_channels % num_groups:
        raise ShapeMismatch(
            f"x has shape {values.shape} with {num_channels} channels (axis 1) for "
            f"{num_groups} groups; "
            "expected a multiple of num_groups"
        )
    grouped = values.reshape(num_examples, num_groups, -1)
    normal = _standardize(grouped, (2,), eps).reshape(values.shape)
    return normal * _per_channel("weight", weight, values, 1.0) + _per_channel(
        "bias", bias, values, 0.0
    )


@dataclass(frozen=True)
class BatchNormResult:
    output: Array
    running_mean: Array
    running_var: Array


def batch_norm(
    x: ArrayLike,
    running_mean: ArrayLike,
    running_var: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    training: bool,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> BatchNormResult:
    """x is (batch, channels, ...). Training uses the batch's statistics and moves the running ones,
    evaluation's.

    momentum is torch's: the weight of the new batch. The running variance takes the unbiased one (n
    - 1), the output the biased one (n), so the two differ for small batches even with momentum 1.
    """
    values = as_float64("x", x)
    require_axes("x", values, 2, "(batch, channels, ...)")
    require_range("eps", eps, 0.0)
    require_range("momentum", momentum, 0.0, 1.0)
    num_channels = values.shape[1]
    mean, var = as_float64("running_mean", running_mean), as_float64("running_var", running_var)
    require_shape("running_mean", mean, (num_channels,), "(channels,), axis 1 of x")
    require_shape("running_var", var, (num_channels,), "(channels,), axis 1 of x")
    next_mean, next_var = mean.copy(), var.copy()
    if training:
        axes = (0, *range(2, values.ndim))
        num_values = values.size // num_channels if num_channels else 0
        if num_values < 2:
            raise ValueOutOfRange(
                f"x has shape {values.shape}, {num_values} value(s) per channel; expected "
                "at least 2 in training, "
                "since the variance of one value is 0"
            )
        mean, var = values.mean(axis=axes), values.var(axis=axes)
        next_mean = (1.0 - momentum) * next_mean + momentum * mean
        next_var = (1.0 - momentum) * next_var + momentum * var * num_values / (num_values - 1)
    normal = (values - _column(mean, values)) / np.sqrt(_column(var, values) + eps)
    output = normal * _per_channel("weight", weight, values, 1.0) + _per_channel(
        "bias", bias, values, 0.0
    )
    return BatchNormResult(output, next_mean, next_var)


def _standardize(values: Array, axes: tuple[int, ...], eps: float) -> Array:
    centred = values - values.mean(axis=axes, keepdims=True)
    normal: Array = centred / np.sqrt((centred**2).mean(axis=axes, keepdims=True) + eps)
    return normal


def _read_trailing(x: ArrayLike, normalized_shape: Sequence[int]) -> tuple[Array, tuple[int, ...]]:
    values = as_float64("x", x)
    wanted = tuple(normalized_shape)
    if not wanted or values.shape[-len(wanted) :] != wanted:
        raise ShapeMismatch(
            f"x has shape {values.shape}; expected (..., {', '.join(map(str, wanted))})"
        )
    if math.prod(wanted) == 0:
        raise ShapeMismatch(
            f"x has shape {values.shape}; expected at least one value to normalise over"
        )
    return values, tuple(range(-len(wanted), 0))


def _read_affine(name: str, value: ArrayLike | None, shape: Sequence[int], neutral: float) -> Array:
    array = np.full(tuple(shape), neutral) if value is None else as_float64(name, value)
    require_shape(name, array, shape, "normalized_shape")
    return array


def _per_channel(name: str, value: ArrayLike | None, like: Array, neutral: float) -> Array:
    array = np.full(like.shape[1], neutral) if value is None else as_float64(name, value)
    require_shape(name, array, (like.shape[1],), "(channels,), axis 1 of x")
    return _column(array, like)


def _column(per_channel: Array, like: Array) -> Array:
    return per_channel.reshape(1, -1, *([1] * (like.ndim - 2)))

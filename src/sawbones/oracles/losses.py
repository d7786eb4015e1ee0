"""Log-sum-exp, softmax and cross-entropy with ignored targets, label smoothing and class weights,
and its gradient.

Classes are the last axis: logits (..., C), targets (...). torch puts them second for images and
sequences, (N, C, T); move the axis before comparing.

With logits z, p = softmax(z), smoothing s and class weights w, an element with target y costs

    loss = sum_c q_c * (-log p_c),    q_c = (1 - s) * w_y * [c = y] + (s / C) * w_c

and reduction "mean" divides the sum by the sum of w_y over the targets that are not ignored, as
torch does.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sawbones.oracles.arguments import (
    Array,
    Bools,
    Ints,
    ValueOutOfRange,
    as_float64,
    as_int64,
    require_axes,
    require_one_of,
    require_range,
    require_shape,
)

Reduction = Literal["mean", "sum", "none"]


def logsumexp(x: ArrayLike, axis: int = -1, keepdims: bool = False) -> Array:
    values = as_float64("x", x)
    require_axes("x", values, 1, "(..., entries)")
    largest = values.max(axis=axis, keepdims=True)
    # A row of only -inf must give -inf, and one with +inf must give +inf: subtracting an infinite
    # maximum gives NaN.
    shift = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        total: Array = np.log(np.exp(values - shift).sum(axis=axis, keepdims=True)) + shift
    return total if keepdims else total.squeeze(axis)


def log_softmax(x: ArrayLike, axis: int = -1) -> Array:
    shifted = _below_largest(x, axis)
    return shifted - logsumexp(shifted, axis=axis, keepdims=True)


def softmax(x: ArrayLike, axis: int = -1) -> Array:
    # Not exp(log_softmax(x)): that would round the logarithm first, and a large one loses digits.
    powers = np.exp(_below_largest(x, axis))
    shares: Array = powers / powers.sum(axis=axis, keepdims=True)
    return shares


def _below_largest(x: ArrayLike, axis: int) -> Array:
    """x minus its largest entry along the axis, so that no power overflows and the largest is 1."""
    values = as_float64("x", x)
    require_axes("x", values, 1, "(..., entries)")
    # inf - inf: a row without a finite largest entry has no softmax; it comes out as NaN, as in
    # torch. Overflow can
    # only go to -inf, which is the right limit.
    with np.errstate(invalid="ignore", over="ignore"):
        shifted: Array = values - values.max(axis=axis, keepdims=True)
    return shifted


def cross_entropy(
    logits: ArrayLike,
    targets: ArrayLike,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    class_weights: ArrayLike | None = None,
    reduction: Reduction = "mean",
) -> Array:
    """A 0-d array for "mean" and "sum"; for "none" one loss per target, 0 where it is ignored."""
    z, y, kept, w = _read(logits, targets, ignore_index, label_smoothing, class_weights)
    require_one_of("reduction", reduction, ("mean", "sum", "none"))
    log_p = log_softmax(z)
    picked = np.take_along_axis(log_p, y[..., None], axis=-1)[..., 0]
    losses = -(1.0 - label_smoothing) * w[y] * picked
    if label_smoothing > 0.0:  # skipped at 0, since 0 * log 0 would be NaN for logits of -inf
        losses = losses - label_smoothing / z.shape[-1] * (log_p * w).sum(axis=-1)
    losses = np.where(kept, losses, 0.0)
    if reduction == "none":
        return losses
    return np.asarray(losses.sum() / (_total_weight(w, y, kept) if reduction == "mean" else 1.0))


def cross_entropy_gradient(
    logits: ArrayLike,
    targets: ArrayLike,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    class_weights: ArrayLike | None = None,
    reduction: Reduction = "mean",
    upstream: ArrayLike = 1.0,
) -> Array:
    """d loss / d logits, of the logits' shape.

    upstream is the gradient of what follows: one number, or for reduction "none" one per target.
    """
    z, y, kept, w = _read(logits, targets, ignore_index, label_smoothing, class_weights)
    require_one_of("reduction", reduction, ("mean", "sum", "none"))
    outer = as_float64("upstream", upstream)
    if outer.ndim:
        require_shape(
            "upstream", outer, y.shape if reduction == "none" else (), "the shape of the loss"
        )
    num_classes = z.shape[-1]
    q = np.zeros_like(z) + label_smoothing / num_classes * w
    hit = y[..., None] == np.arange(num_classes)
    q = q + hit * ((1.0 - label_smoothing) * w[y])[..., None]
    # -log p_c = logsumexp(z) - z_c, so the gradient of sum_c q_c (-log p_c) is (sum_c q_c) p - q.
    per_element = q.sum(axis=-1, keepdims=True) * softmax(z) - q
    per_element = (
        np.where(kept[..., None], per_element, 0.0) * np.broadcast_to(outer, y.shape)[..., None]
    )
    return per_element / _total_weight(w, y, kept) if reduction == "mean" else per_element


def _read(
    logits: ArrayLike,
    targets: ArrayLike,
    ignore_index: int,
    label_smoothing: float,
    class_weights: ArrayLike | None,
) -> tuple[Array, Ints, Bools, Array]:
    """Logits, targets with 0 in place of the ignored ones, which ones are kept, class weights."""
    z = as_float64("logits", logits)
    require_axes("logits", z, 1, "(..., classes)")
    num_classes = z.shape[-1]
    y = as_int64("targets", targets)
    require_shape(
        "targets",
        y,
        z.shape[:-1],
        "the logits' shape without the class axis, which is the last one",
    )
    require_range("label_smoothing", label_smoothing, 0.0, 1.0)
    kept = y != ignore_index
    wrong = kept & ((y < 0) | (y >= num_classes))
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueOutOfRange(
            f"targets{list(first)} is {y[first]}; expected 0..{num_classes - 1} for "
            f"{num_classes} classes, "
            f"or ignore_index {ignore_index} ({int(wrong.sum())} of {y.size} targets are outside)"
        )
    w = (
        np.ones(num_classes)
        if class_weights is None
        else as_float64("class_weights", class_weights)
    )
    require_shape("class_weights", w, (num_classes,), "(classes,)")
    return z, np.where(kept, y, 0), kept, w


def _total_weight(w: Array, y: Ints, kept: Bools) -> float:
    total = float((w[y] * kept).sum())
    if total == 0.0:
        raise ValueOutOfRange(
            f"the mean has no terms: {int(kept.sum())} of {kept.size} targets are kept, "
            "with total weight 0; "
            'expected at least one kept target of positive weight, or reduction="sum"'
        )
    return total

"""Scaled dot-product attention with masks. One convention: True = may attend.

Shape suffixes: Q queries, K keys, D head width, V value width; leading axes (batch, heads, ...) are
free.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sawbones.oracles.arguments import (
    Array,
    Bools,
    ShapeMismatch,
    ValueOutOfRange,
    as_bool,
    as_float64,
    as_int64,
    require_axes,
    require_one_of,
    require_shape,
)
from sawbones.oracles.losses import softmax


@dataclass(frozen=True)
class Attention:
    output_QV: Array
    weights_QK: Array


def attention(
    queries: ArrayLike,
    keys: ArrayLike,
    values: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
) -> Attention:
    """softmax(queries keys^T * scale) values; scale is 1/sqrt(D) unless given. The mask broadcasts
    to (..., Q, K).
    """
    q_QD, k_KD, v_KV = (
        as_float64("queries", queries),
        as_float64("keys", keys),
        as_float64("values", values),
    )
    for name, array in (("queries", q_QD), ("keys", k_KD), ("values", v_KV)):
        require_axes(name, array, 2, "(..., positions, width)")
    if q_QD.shape[-1] != k_KD.shape[-1]:
        raise ShapeMismatch(
            f"keys have shape {k_KD.shape}; expected the last axis to be "
            f"{q_QD.shape[-1]}, as in queries {q_QD.shape}"
        )
    if v_KV.shape[-2] != k_KD.shape[-2]:
        raise ShapeMismatch(
            f"values have shape {v_KV.shape}; expected {k_KD.shape[-2]} positions (axis "
            f"-2), as in keys {k_KD.shape}"
        )
    try:
        np.broadcast_shapes(q_QD.shape[:-2], k_KD.shape[:-2], v_KV.shape[:-2])
    except ValueError as error:
        raise ShapeMismatch(
            f"queries {q_QD.shape}, keys {k_KD.shape} and values {v_KV.shape} differ in "
            "their leading axes; "
            "expected (batch, heads, ...) alike, or 1"
        ) from error
    factor = q_QD.shape[-1] ** -0.5 if scale is None else scale
    scores_QK = q_QD @ np.swapaxes(k_KD, -1, -2) * factor
    if mask is not None:
        scores_QK = np.where(_read_mask(mask, scores_QK.shape), scores_QK, -np.inf)
    weights_QK = softmax(scores_QK)
    return Attention(weights_QK @ v_KV, weights_QK)


@dataclass(frozen=True)
class AttentionGradients:
    queries_QD: Array
    keys_KD: Array
    values_KV: Array


def attention_gradients(
    queries: ArrayLike,
    keys: ArrayLike,
    values: ArrayLike,
    upstream: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
) -> AttentionGradients:
    """upstream is d loss / d output, of the output's shape; the leading axes of queries, keys and
    values are equal here, not broadcast.
    """
    q_QD, k_KD, v_KV = (
        as_float64("queries", queries),
        as_float64("keys", keys),
        as_float64("values", values),
    )
    forward = attention(q_QD, k_KD, v_KV, mask, scale=scale)
    do_QV = as_float64("upstream", upstream)
    require_shape("upstream", do_QV, forward.output_QV.shape, "the shape of the output")
    for name, array in (("keys", k_KD), ("values", v_KV)):
        require_shape(name, array, (*q_QD.shape[:-2], *array.shape[-2:]), "as in queries, ...")
    factor = q_QD.shape[-1] ** -0.5 if scale is None else scale
    w_QK = forward.weights_QK
    dw_QK = do_QV @ np.swapaxes(v_KV, -1, -2)
    # The softmax of a row: what all its weights share drops out. A masked weight is 0, and so is
    # the gradient of its score.
    ds_QK = w_QK * (dw_QK - (dw_QK * w_QK).sum(axis=-1, keepdims=True))
    return AttentionGradients(
        ds_QK @ k_KD * factor,
        np.swapaxes(ds_QK, -1, -2) @ q_QD * factor,
        np.swapaxes(w_QK, -1, -2) @ do_QV,
    )


def causal_mask(num_queries: int, num_keys: int | None = None, *, first_query: int = 0) -> Bools:
    """(Q, K). Query i sits at position first_query + i and sees the keys up to itself.

    When decoding with a cache, first_query is the number of cached positions. With 0 this is
    torch's is_causal.
    """
    num = num_queries if num_keys is None else num_keys
    return np.arange(num)[None, :] <= first_query + np.arange(num_queries)[:, None]


def padding_mask(
    lengths: ArrayLike, num_keys: int, *, padding_side: Literal["right", "left"] = "right"
) -> Bools:
    """(batch, 1, 1, K), to be combined with a causal mask by & and to broadcast over heads and
    queries.
    """
    require_one_of("padding_side", padding_side, ("right", "left"))
    counts = as_int64("lengths", lengths)
    if counts.ndim != 1:
        raise ShapeMismatch(f"lengths has shape {counts.shape}; expected 1 axis = (batch,)")
    if ((counts < 0) | (counts > num_keys)).any():
        raise ValueOutOfRange(
            f"lengths are {counts.tolist()}; expected 0..{num_keys}, the number of keys"
        )
    place = np.arange(num_keys)
    real = (
        place < counts[:, None] if padding_side == "right" else place >= num_keys - counts[:, None]
    )
    return real[:, None, None, :]


def _read_mask(mask: ArrayLike, shape: tuple[int, ...]) -> Bools:
    allowed = as_bool("mask", mask)
    try:
        full = np.broadcast_to(allowed, shape)
    except ValueError as error:
        raise ShapeMismatch(
            f"mask has shape {allowed.shape}; expected to broadcast to {shape} = (..., Q, K)"
        ) from error
    empty = ~full.any(axis=-1)
    if empty.any():
        first = [int(i) for i in np.argwhere(empty)[0]]
        raise ValueOutOfRange(
            f"mask row {first} allows no key ({int(empty.sum())} of {empty.size} rows); "
            "expected at least one True "
            "per row, since a softmax over nothing is NaN"
        )
    return full

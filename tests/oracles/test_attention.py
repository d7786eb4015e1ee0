"""Attention and its masks against torch's scaled_dot_product_attention."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from sawbones.oracles.arguments import ShapeMismatch, ValueOutOfRange
from sawbones.oracles.attention import (
    attention,
    attention_gradients,
    causal_mask,
    padding_mask,
)


def draw(seed, num_queries=4, num_keys=6):
    rng = np.random.default_rng(seed)
    return [
        rng.normal(size=(2, 3, num, width))
        for num, width in ((num_queries, 8), (num_keys, 8), (num_keys, 5))
    ]


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from([None, 0.3]),
)
@settings(deadline=None, derandomize=True, max_examples=50)
def test_attention_equals_torch(seed, num_queries, num_keys, masked, scale):
    q, k, v = draw(seed, num_queries, num_keys)
    mask = None
    if masked:
        mask = np.random.default_rng(seed).random((2, 1, num_queries, num_keys)) < 0.5
        mask[..., 0] = True
    expected = F.scaled_dot_product_attention(
        *map(torch.from_numpy, (q, k, v)),
        attn_mask=None if mask is None else torch.from_numpy(mask),
        scale=scale,
    )
    result = attention(q, k, v, mask, scale=scale)
    np.testing.assert_allclose(result.output_QV, expected.numpy(), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(result.weights_QK.sum(axis=-1), 1.0, rtol=1e-12)
    if mask is not None:
        assert (result.weights_QK[~np.broadcast_to(mask, result.weights_QK.shape)] == 0.0).all()


@pytest.mark.parametrize(("num_queries", "num_keys"), [(5, 5), (3, 6), (6, 3)])
def test_causal_mask_is_torchs_is_causal(num_queries, num_keys):
    q, k, v = draw(0, num_queries, num_keys)
    expected = F.scaled_dot_product_attention(*map(torch.from_numpy, (q, k, v)), is_causal=True)
    ours = attention(q, k, v, causal_mask(num_queries, num_keys))
    np.testing.assert_allclose(ours.output_QV, expected.numpy(), rtol=1e-10, atol=1e-12)


def test_decoding_with_a_cache_equals_the_full_forward():
    q, k, v = draw(1, 6, 6)
    full = attention(q, k, v, causal_mask(6)).output_QV
    for t in range(6):
        one = attention(
            q[..., t : t + 1, :],
            k[..., : t + 1, :],
            v[..., : t + 1, :],
            causal_mask(1, t + 1, first_query=t),
        )
        np.testing.assert_allclose(
            one.output_QV[..., 0, :], full[..., t, :], rtol=1e-12, atol=1e-14
        )


@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_mask_makes_padding_invisible(side):
    q, k, v = draw(2, 4, 6)
    mask = padding_mask([2, 6], 6, padding_side=side)
    real = slice(0, 2) if side == "right" else slice(4, 6)
    assert mask.shape == (2, 1, 1, 6)
    assert mask.sum(axis=-1).ravel().tolist() == [2, 6]
    alone = attention(q[:1], k[:1, :, real], v[:1, :, real]).output_QV
    np.testing.assert_allclose(
        attention(q, k, v, mask).output_QV[:1], alone, rtol=1e-12, atol=1e-14
    )


def test_a_row_without_any_key_is_refused_with_its_place():
    q, k, v = draw(3, 4, 6)
    mask = causal_mask(4, 6) & padding_mask([6, 2], 6, padding_side="left")
    with pytest.raises(
        ValueOutOfRange, match=r"mask row \[1, 0, 0\] allows no key \(12 of 24 rows\); expected"
    ):
        attention(q, k, v, mask)


@pytest.mark.parametrize("mask", [np.zeros((4, 6)), np.ones((4, 6), dtype=np.int64)])
def test_additive_and_integer_masks_are_refused(mask):
    with pytest.raises(
        ValueOutOfRange, match=r"mask has dtype (float64|int64); expected bool, True = may attend"
    ):
        attention(*draw(4), mask)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda q, k, v: (q[..., :7], k, v),
            r"keys have shape \(2, 3, 6, 8\); expected the last axis to be 7",
        ),
        (
            lambda q, k, v: (q, k, v[:, :, :5]),
            r"values have shape \(2, 3, 5, 5\); expected 6 positions",
        ),
        (lambda q, k, v: (q[:, :2], k, v), r"differ in their leading axes; expected"),
        (lambda q, k, v: (q[0, 0, 0], k, v), r"queries has shape \(8,\); expected at least 2 axes"),
        (
            lambda q, k, v: (q, k, v, np.ones((6, 4), bool)),
            r"mask has shape \(6, 4\); expected to broadcast to \(2, 3, 4, 6\)",
        ),
    ],
)
def test_a_wrong_shape_is_named_with_the_expected_one(change, message):
    with pytest.raises(ShapeMismatch, match=message):
        attention(*change(*draw(5)))


def test_lengths_are_checked():
    with pytest.raises(ValueOutOfRange, match=r"lengths are \[7\]; expected 0\.\.6"):
        padding_mask([7], 6)
    with pytest.raises(ShapeMismatch, match=r"lengths has shape \(1, 1\); expected 1 axis"):
        padding_mask([[3]], 6)


@pytest.mark.parametrize("scale", [None, 0.3])
@pytest.mark.parametrize("masked", [True, False])
def test_the_gradients_of_attention_equal_autograd(masked, scale):
    q, k, v = draw(3, 5, 5)
    upstream = np.random.default_rng(4).normal(size=(2, 3, 5, 5))
    mask = causal_mask(5) if masked else None
    tensors = [torch.from_numpy(a).requires_grad_() for a in (q, k, v)]
    F.scaled_dot_product_attention(
        *tensors, attn_mask=None if mask is None else torch.from_numpy(mask), scale=scale
    ).backward(torch.from_numpy(upstream))
    found = attention_gradients(q, k, v, upstream, mask, scale=scale)
    for got, tensor in zip(
        (found.queries_QD, found.keys_KD, found.values_KV), tensors, strict=True
    ):
        np.testing.assert_allclose(got, tensor.grad.numpy(), 1e-9, 1e-11)

"""Sinusoidal and rotary positions against complex arithmetic in torch."""

import numpy as np
import pytest
import torch

from sawbones.oracles.arguments import ShapeMismatch, ValueOutOfRange
from sawbones.oracles.positions import rotary, sinusoidal


def turns(positions, width, base):
    """exp(i * angle) in torch: its real and imaginary parts are the cosines and sines, its product
    the rotation.
    """
    frequency = torch.exp(
        -torch.log(torch.tensor(base, dtype=torch.float64)) * torch.arange(width // 2) * 2 / width
    )
    angle = torch.outer(torch.from_numpy(positions).double(), frequency)
    return torch.polar(torch.ones_like(angle), angle)


@pytest.mark.parametrize(
    ("num", "width", "base"), [(1, 2, 10_000.0), (50, 16, 10_000.0), (20, 6, 500.0)]
)
def test_sinusoidal_equals_torch(num, width, base):
    unit = turns(np.arange(num), width, base)
    expected = torch.stack([unit.imag, unit.real], dim=-1).flatten(-2)
    np.testing.assert_allclose(
        sinusoidal(num, width, base=base), expected.numpy(), rtol=1e-10, atol=1e-13
    )


def test_sinusoidal_known_values():
    np.testing.assert_allclose(sinusoidal(2, 4)[0], [0.0, 1.0, 0.0, 1.0])
    np.testing.assert_allclose(
        sinusoidal(2, 4)[1], [np.sin(1), np.cos(1), np.sin(0.01), np.cos(0.01)], rtol=1e-14
    )


@pytest.mark.parametrize("base", [10_000.0, 500.0])
@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_rotary_equals_complex_multiplication_in_torch(layout, base):
    x = np.random.default_rng(0).normal(size=(2, 3, 7, 8))
    positions = np.array([0, 1, 2, 5, 9, 100, 3])
    pairs = (*x.shape[:-1], 4, 2) if layout == "interleaved" else (*x.shape[:-1], 2, 4)
    tensor = torch.from_numpy(x).reshape(pairs)
    if layout == "halves":
        tensor = tensor.transpose(-1, -2)
    turned = torch.view_as_real(
        torch.view_as_complex(tensor.contiguous()) * turns(positions, 8, base)
    )
    if layout == "halves":
        turned = turned.transpose(-1, -2)
    result = rotary(x, positions, base=base, layout=layout)
    np.testing.assert_allclose(result, turned.reshape(x.shape).numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_rotary_scores_depend_on_the_distance_only(layout):
    q, k = np.random.default_rng(1).normal(size=(2, 1, 8))
    scores = [
        rotary(q, [t + 3], layout=layout) @ rotary(k, [t], layout=layout).T for t in (0, 1, 40)
    ]
    np.testing.assert_allclose(scores, np.broadcast_to(scores[0], np.shape(scores)), rtol=1e-10)
    other = rotary(q, [4], layout=layout) @ rotary(k, [0], layout=layout).T
    assert abs(other - scores[0]) > 1e-3


def test_layouts_differ():
    x = np.random.default_rng(2).normal(size=(3, 8))
    assert np.abs(rotary(x, [0, 1, 2]) - rotary(x, [0, 1, 2], layout="halves")).max() > 0.1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sinusoidal(4, 5), r"width is 5; expected an even number"),
        (
            lambda: rotary(np.zeros((4, 6)), np.arange(3)),
            r"positions has shape \(3,\); expected \(4,\)",
        ),
        (lambda: rotary(np.zeros((4, 5)), np.arange(4)), r"width is 5; expected an even number"),
        (lambda: rotary(np.zeros(6), [0]), r"x has shape \(6,\); expected at least 2 axes"),
    ],
)
def test_a_wrong_shape_is_named_with_the_expected_one(call, message):
    with pytest.raises(ShapeMismatch, match=message):
        call()


def test_unknown_layout_lists_the_known_ones():
    with pytest.raises(
        ValueOutOfRange, match="layout is 'llama'; expected one of interleaved, halves"
    ):
        rotary(np.zeros((4, 6)), np.arange(4), layout="llama")

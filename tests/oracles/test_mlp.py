"""The two-layer MLP against torch and against finite differences."""

import numpy as np
import pytest
import torch

from sawbones.oracles.arguments import ShapeMismatch, ValueOutOfRange
from sawbones.oracles.gradcheck import check_gradient
from sawbones.oracles.losses import cross_entropy, cross_entropy_gradient
from sawbones.oracles.mlp import mlp_backward, mlp_forward


def draw_mlp(seed, num_examples=5, num_inputs=4, num_hidden=7, num_outputs=3):
    rng = np.random.default_rng(seed)
    shapes = [
        (num_examples, num_inputs),
        (num_inputs, num_hidden),
        (num_hidden,),
        (num_hidden, num_outputs),
        (num_outputs,),
    ]
    return [rng.normal(size=shape) for shape in shapes], rng.integers(0, num_outputs, num_examples)


def gradients_in_order(arrays, upstream, activation):
    back = mlp_backward(mlp_forward(*arrays, activation=activation), upstream)
    return [back.x_BD, back.w1_DH, back.b1_H, back.w2_HK, back.b2_K]


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("sizes", [(5, 4, 7, 3), (1, 1, 1, 1), (3, 3, 3, 3), (8, 2, 5, 2)])
def test_forward_and_backward_equal_torch_linear_layers(activation, sizes):
    arrays, _ = draw_mlp(0, *sizes)
    x, w1, b1, w2, b2 = [torch.from_numpy(a).requires_grad_() for a in arrays]
    hidden = getattr(torch, activation)(torch.nn.functional.linear(x, w1.T, b1))
    output = torch.nn.functional.linear(hidden, w2.T, b2)
    np.testing.assert_allclose(
        mlp_forward(*arrays, activation=activation).output_BK,
        output.detach().numpy(),
        rtol=1e-12,
        atol=1e-13,
    )
    upstream = np.random.default_rng(1).normal(size=output.shape)
    output.backward(torch.from_numpy(upstream))
    for ours, tensor in zip(
        gradients_in_order(arrays, upstream, activation), (x, w1, b1, w2, b2), strict=True
    ):
        np.testing.assert_allclose(ours, tensor.grad.numpy(), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("seed", range(3))
def test_backward_agrees_with_finite_differences(activation, seed):
    arrays, _ = draw_mlp(seed)
    upstream = np.random.default_rng(seed + 10).normal(size=(5, 3))
    report = check_gradient(
        lambda *a: mlp_forward(*a, activation=activation).output_BK,
        gradients_in_order(arrays, upstream, activation),
        arrays,
        upstream=upstream,
    )
    assert report.max_relative_error < 1e-6, report


def test_network_with_its_loss_agrees_with_finite_differences():
    arrays, targets = draw_mlp(3)
    output = mlp_forward(*arrays, activation="tanh").output_BK
    gradients = gradients_in_order(arrays, cross_entropy_gradient(output, targets), "tanh")
    report = check_gradient(
        lambda *a: cross_entropy(mlp_forward(*a, activation="tanh").output_BK, targets),
        gradients,
        arrays,
    )
    assert report.max_relative_error < 1e-6, report


def test_relu_has_slope_zero_at_zero_as_in_torch():
    tensor = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    torch.relu(tensor).backward()
    back = mlp_backward(mlp_forward([[0.0]], [[1.0]], [0.0], [[1.0]], [0.0]), [[1.0]])
    assert back.b1_H[0] == tensor.grad[0] == 0.0


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, np.zeros(4), r"x has shape \(4,\); expected 2 axes = \(batch, inputs\)"),
        (
            1,
            np.zeros((7, 4)),
            r"w1 has shape \(7, 4\); expected \(4, any\).*the transpose fits.*pass w1\.T",
        ),
        (1, np.zeros((5, 7)), r"w1 has shape \(5, 7\); expected \(4, any\) = \(in, out\)$"),
        (2, np.zeros((1, 7)), r"b1 has shape \(1, 7\); expected \(7,\)"),
        (3, np.zeros((6, 3)), r"w2 has shape \(6, 3\); expected \(7, any\)"),
        (4, np.zeros(7), r"b2 has shape \(7,\); expected \(3,\)"),
    ],
)
def test_a_wrong_shape_is_named_with_the_expected_one(position, value, message):
    arrays, _ = draw_mlp(0)
    arrays[position] = value
    with pytest.raises(ShapeMismatch, match=message):
        mlp_forward(*arrays)


def test_upstream_and_activation_are_checked():
    arrays, _ = draw_mlp(0)
    with pytest.raises(ShapeMismatch, match=r"upstream has shape \(3, 5\); expected \(5, 3\)"):
        mlp_backward(mlp_forward(*arrays), np.zeros((3, 5)))
    with pytest.raises(ValueOutOfRange, match="activation is 'gelu'; expected one of relu, tanh"):
        mlp_forward(*arrays, activation="gelu")

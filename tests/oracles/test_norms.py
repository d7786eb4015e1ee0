"""LayerNorm, RMSNorm, GroupNorm and BatchNorm against torch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from sawbones.oracles.arguments import ShapeMismatch, ValueOutOfRange
from sawbones.oracles.norms import (
    batch_norm,
    group_norm,
    layer_norm,
    layer_norm_gradients,
    rms_norm,
)

RTOL, ATOL = 1e-11, 1e-12


def draw(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [2.0 + 3.0 * rng.normal(size=shape) for shape in shapes]


def as_tensors(*arrays):
    return [None if a is None else torch.from_numpy(a) for a in arrays]


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize(
    ("shape", "normalized"), [((4, 6), (6,)), ((2, 3, 5), (5,)), ((2, 3, 5), (3, 5)), ((6,), (6,))]
)
def test_layer_and_rms_norm_equal_torch(shape, normalized, affine):
    x, weight, bias = draw(0, shape, normalized, normalized)
    if not affine:
        weight = bias = None
    tensor, tensor_weight, tensor_bias = as_tensors(x, weight, bias)
    expected = F.layer_norm(tensor, normalized, tensor_weight, tensor_bias, 1e-3)
    np.testing.assert_allclose(
        layer_norm(x, normalized, weight, bias, eps=1e-3), expected.numpy(), RTOL, ATOL
    )
    expected = F.rms_norm(tensor, normalized, tensor_weight, 1e-3)
    np.testing.assert_allclose(
        rms_norm(x, normalized, weight, eps=1e-3), expected.numpy(), RTOL, ATOL
    )


def test_default_eps_is_torchs():
    x = 1e-3 * draw(1, (4, 6))[0]  # variance of the order of eps, so that eps is seen
    tensor = torch.from_numpy(x)
    np.testing.assert_allclose(layer_norm(x, (6,)), F.layer_norm(tensor, (6,)).numpy(), RTOL, ATOL)
    np.testing.assert_allclose(group_norm(x, 2), F.group_norm(tensor, 2).numpy(), RTOL, ATOL)
    np.testing.assert_allclose(
        batch_norm(x, np.zeros(6), np.ones(6), training=True).output,
        F.batch_norm(tensor, None, None, training=True).numpy(),
        RTOL,
        ATOL,
    )


@pytest.mark.parametrize("num_groups", [1, 2, 6])
@pytest.mark.parametrize("shape", [(3, 6), (3, 6, 4), (2, 6, 3, 4)])
def test_group_norm_equals_torch(shape, num_groups):
    x, weight, bias = draw(2, shape, 6, 6)
    expected = F.group_norm(torch.from_numpy(x), num_groups, *as_tensors(weight, bias), 1e-4)
    if num_groups == 6 and len(shape) == 2:
        np.testing.assert_allclose(expected.numpy(), np.broadcast_to(bias, shape), atol=1e-9)
    np.testing.assert_allclose(
        group_norm(x, num_groups, weight, bias, eps=1e-4), expected.numpy(), RTOL, ATOL
    )


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(5, 3), (5, 3, 4), (2, 3, 4, 4)])
def test_batch_norm_equals_torch_in_output_and_running_statistics(shape, training):
    x, weight, bias, mean, var = draw(3, shape, 3, 3, 3, 3)
    var = np.abs(var)
    tensor_mean, tensor_var = torch.from_numpy(mean.copy()), torch.from_numpy(var.copy())
    expected = F.batch_norm(
        torch.from_numpy(x),
        tensor_mean,
        tensor_var,
        *as_tensors(weight, bias),
        training=training,
        momentum=0.3,
    )
    given_mean = mean.copy()
    result = batch_norm(x, mean, var, weight, bias, training=training, momentum=0.3)
    np.testing.assert_allclose(result.output, expected.numpy(), RTOL, ATOL)
    np.testing.assert_allclose(result.running_mean, tensor_mean.numpy(), RTOL, ATOL)
    np.testing.assert_allclose(result.running_var, tensor_var.numpy(), RTOL, ATOL)
    np.testing.assert_array_equal(mean, given_mean)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: layer_norm(x, (3,)), r"x has shape \(2, 4\); expected \(\.\.\., 3\)"),
        (
            lambda x: layer_norm(x, (4,), np.ones(2)),
            r"weight has shape \(2,\); expected \(4,\) = normalized_shape",
        ),
        (lambda x: rms_norm(x, (2,), eps=0.0), r"x has shape \(2, 4\); expected \(\.\.\., 2\)"),
        (lambda x: group_norm(x, 3), r"4 channels \(axis 1\) for 3 groups; expected a multiple"),
        (
            lambda x: group_norm(x, 2, np.ones(2)),
            r"weight has shape \(2,\); expected \(4,\) = \(channels,\)",
        ),
        (lambda x: group_norm(x[0], 2), r"x has shape \(4,\); expected at least 2 axes"),
        (
            lambda x: batch_norm(x, np.zeros(2), np.ones(4), training=True),
            r"running_mean has shape \(2,\); expected \(4,\)",
        ),
    ],
)
def test_a_wrong_shape_is_named_with_the_expected_one(call, message):
    with pytest.raises(ShapeMismatch, match=message):
        call(np.zeros((2, 4)))


def test_batch_norm_refuses_to_train_on_one_value_as_torch_does():
    with pytest.raises(
        ValueOutOfRange, match=r"1 value\(s\) per channel; expected at least 2 in training"
    ):
        batch_norm(np.zeros((1, 4)), np.zeros(4), np.ones(4), training=True)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        F.batch_norm(torch.zeros(1, 4), None, None, training=True)


@pytest.mark.parametrize(("shape", "normalized"), [((4, 6), (6,)), ((2, 3, 5), (3, 5))])
def test_the_gradients_of_layer_norm_equal_autograd(shape, normalized):
    x, weight, bias, upstream = draw(1, shape, normalized, normalized, shape)
    tensors = [t.requires_grad_() for t in as_tensors(x, weight, bias)]
    F.layer_norm(tensors[0], normalized, tensors[1], tensors[2], 1e-3).backward(
        torch.from_numpy(upstream)
    )
    found = layer_norm_gradients(x, normalized, weight, upstream, eps=1e-3)
    for got, tensor in zip((found.x, found.weight, found.bias), tensors, strict=True):
        np.testing.assert_allclose(got, tensor.grad.numpy(), 1e-9, 1e-10)
    with pytest.raises(ShapeMismatch, match="upstream"):
        layer_norm_gradients(x, normalized, weight, upstream[:1])

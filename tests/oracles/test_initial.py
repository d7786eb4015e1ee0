"""Glorot and He variances against what torch.nn.init draws."""

import numpy as np
import pytest
import torch
from torch.nn import init

from sawbones.oracles.arguments import ShapeMismatch, ValueOutOfRange
from sawbones.oracles.initial import fans, glorot_variance, he_variance, uniform_bound

SHAPES = [(600, 300), (64, 48, 5, 7)]


def assert_variance(draw, variance, kurtosis):
    """Within five standard errors of a sample variance; a factor-of-two mistake is hundreds of them
    away.
    """
    standard_error = variance * np.sqrt((kurtosis - 1.0) / draw.numel())
    assert abs(float(draw.double().var()) - variance) < 5 * standard_error


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("gain", [1.0, 5 / 3])
def test_glorot_variance_is_what_torch_draws(shape, gain):
    generator = torch.Generator().manual_seed(0)
    variance = glorot_variance(shape, gain=gain)
    assert_variance(
        init.xavier_normal_(torch.empty(shape), gain, generator), variance, kurtosis=3.0
    )
    uniform = init.xavier_uniform_(torch.empty(shape), gain, generator)
    assert_variance(uniform, variance, kurtosis=1.8)
    assert (
        0.999 * uniform_bound(variance)
        < float(uniform.abs().max())
        <= uniform_bound(variance) * (1 + 1e-6)
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", ["fan_in", "fan_out"])
@pytest.mark.parametrize("slope", [0.0, 5**0.5])
def test_he_variance_is_what_torch_draws(shape, mode, slope):
    generator = torch.Generator().manual_seed(1)
    variance = he_variance(shape, negative_slope=slope, mode=mode)
    normal = init.kaiming_normal_(torch.empty(shape), slope, mode, "leaky_relu", generator)
    assert_variance(normal, variance, kurtosis=3.0)
    uniform = init.kaiming_uniform_(torch.empty(shape), slope, mode, "leaky_relu", generator)
    assert_variance(uniform, variance, kurtosis=1.8)
    assert (
        0.999 * uniform_bound(variance)
        < float(uniform.abs().max())
        <= uniform_bound(variance) * (1 + 1e-6)
    )


def test_he_keeps_the_scale_through_a_deep_relu_network():
    rng, x = np.random.default_rng(0), np.random.default_rng(1).normal(size=(256, 512))
    before = (x**2).mean()
    for _ in range(10):
        x = np.maximum(x, 0.0) @ rng.normal(0.0, np.sqrt(he_variance((512, 512))), size=(512, 512))
    assert 0.5 < (x**2).mean() / before < 2.0


def test_fans_and_what_they_refuse():
    assert fans((8, 3, 5, 5)) == (75, 200)
    with pytest.raises(ShapeMismatch, match=r"weight_shape is \(8,\); expected at least 2 axes"):
        fans((8,))
    with pytest.raises(ValueOutOfRange, match="mode is 'fan_avg'; expected one of fan_in, fan_out"):
        he_variance((8, 3), mode="fan_avg")

"""Statistics made all at once, as on a device, against those made one tensor at a time."""

from __future__ import annotations

import math

import pytest
import torch

from sawbones.observe.deep.measure import Ledger, Statistic, _on_host, _Samples

TENSORS = (
    torch.randn(3, 5, generator=torch.Generator().manual_seed(0)),
    torch.randn(40, 50, 60, generator=torch.Generator().manual_seed(1)),
    torch.tensor(2.5),
    torch.arange(50) % 9,
    torch.arange(40) % 3 == 0,
    torch.full((6,), math.nan),
    torch.tensor([1.0, math.inf, -3.0]),
    torch.randn(64, 64, generator=torch.Generator().manual_seed(2)).bfloat16().t(),
    torch.tensor([[1.0], [2.0]]).expand(2, 7),
)


def test_statistics_of_many_tensors_at_once_are_those_of_each() -> None:
    ledger, samples = Ledger(), _Samples(torch.device("cpu"))
    found = [Statistic() for _ in TENSORS]
    for statistic, tensor in zip(found, TENSORS, strict=True):
        samples.take(statistic, tensor)
    ledger._sampled[torch.device("cpu")] = samples
    ledger.read()
    for statistic, tensor in zip(found, TENSORS, strict=True):
        alone = Statistic()
        alone.fill(_on_host(tensor))
        for name in Statistic.__slots__:
            made, expected = getattr(statistic, name), getattr(alone, name)
            near = (
                pytest.approx(expected, rel=1e-4, abs=1e-6)
                if isinstance(expected, float)
                else expected
            )
            assert made == near, (tensor.shape, name)


def test_a_value_that_is_not_finite_is_counted_although_the_sample_leaves_it_out() -> None:
    tensor = torch.zeros(100_000)
    tensor[1] = math.inf
    statistic, samples = Statistic(), _Samples(torch.device("cpu"))
    samples.take(statistic, tensor)
    ledger = Ledger()
    ledger._sampled[torch.device("cpu")] = samples
    ledger.read()
    assert (statistic.nonfinite, statistic.max) == (1, 0.0)

"""What the page draws of a deep step: histograms of the weights, and attention as a map."""

from __future__ import annotations

import math

import pytest
import torch
from tests.observe.deep import models
from tests.observe.deep.watching import observe
from torch import nn
from torch.nn import functional as F


def test_a_histogram_counts_every_finite_value_once() -> None:
    model = nn.Sequential(nn.Linear(8, 6), nn.Linear(6, 3))
    with torch.no_grad():
        model[0].weight[0, 0] = math.inf
    record = observe(model, lambda: model[0](torch.randn(4, 8)).nan_to_num().sum())
    found = {weights.name: weights for weights in record.weights}
    assert set(found) == {"0.weight", "1.weight"}, "a bias of six values has no distribution"
    assert (sum(found["0.weight"].counts), found["0.weight"].nonfinite) == (47, 1)
    second = found["1.weight"]
    assert sum(second.counts) == 18 and second.shape == (3, 6)
    low, high = torch.aminmax(model[1].weight.detach())
    assert (second.low, second.high) == pytest.approx((float(low), float(high)))


@pytest.mark.parametrize("length", [8, 60])
def test_rows_of_an_attention_map_hold_all_the_mass(length: int) -> None:
    ids = torch.randint(0, 17, (2, length), generator=torch.Generator().manual_seed(0))
    model = nn.ModuleDict({"in": nn.Embedding(17, 16), "out": nn.Linear(16, 17)})

    def loss() -> torch.Tensor:
        hidden = model["in"](ids)[:, None]
        mixed = F.scaled_dot_product_attention(hidden, hidden, hidden, is_causal=True)
        return F.cross_entropy(model["out"](mixed[:, 0]).transpose(1, 2), ids)

    (attention,) = observe(model, loss).attention
    assert len(attention.map) == len(attention.map[0]) == min(length, 24)
    for number, row in enumerate(attention.map):
        assert sum(row) == pytest.approx(1.0, abs=0.01)
        assert sum(row[number + 1 :]) == 0.0, "nothing lies in the future of a causal one"
    assert attention.map[0][0] > 0.9


def test_only_the_first_attention_calls_keep_a_map() -> None:
    model, ids = models.SdpaGPT(), models.tokens()
    record = observe(model, lambda: F.cross_entropy(model(ids).transpose(1, 2), ids))
    assert record.attention and all(one.map for one in record.attention[:12])

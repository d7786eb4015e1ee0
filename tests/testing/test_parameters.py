"""Which parameters learn."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from sawbones.testing import (
    assert_all_parameters_optimized,
    assert_decay_groups,
    assert_decoupled_decay,
    assert_every_parameter_gets_gradient,
    assert_float32_weights,
    assert_modules_registered,
)


class TwoParts(nn.Module):
    def __init__(self, cut: bool) -> None:
        super().__init__()
        self.cut, self.body, self.head = cut, nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.body(x)
        return self.head(hidden.detach() if self.cut else hidden)


class HiddenLayers(nn.Module):
    def __init__(self, kind: type) -> None:
        super().__init__()
        self.layers = kind([nn.Linear(4, 4), nn.Linear(4, 4)])


def _loss(model: nn.Module, batch: Tensor) -> Tensor:
    return model(batch).square().mean()


def test_a_cut_graph_names_what_gets_no_gradient_and_leaves_gradients_alone() -> None:
    model = TwoParts(cut=True)
    model.head.weight.grad = torch.ones(2, 4)
    with pytest.raises(
        AssertionError, match=r"2 of 4 parameters get no gradient: body.weight, body.bias; expected"
    ):
        assert_every_parameter_gets_gradient(model, torch.randn(3, 4), _loss)
    assert torch.equal(model.head.weight.grad, torch.ones(2, 4)) and model.body.weight.grad is None
    assert_every_parameter_gets_gradient(model, torch.randn(3, 4), _loss, frozen=("body",))
    assert_every_parameter_gets_gradient(TwoParts(cut=False), torch.randn(3, 4), _loss)


def test_parameters_outside_of_the_optimizer_are_named_and_stale_ones_too() -> None:
    model = TwoParts(cut=False)
    with pytest.raises(
        AssertionError, match=r"2 of 4 parameters are in no parameter group: body.weight, body.bias"
    ):
        assert_all_parameters_optimized(model, torch.optim.SGD(model.head.parameters(), lr=0.1))
    stale = torch.optim.SGD([*model.parameters(), nn.Parameter(torch.zeros(7))], lr=0.1)
    with pytest.raises(
        AssertionError, match=r"1 tensors of the optimizer are not the model's \(shapes \(7,\)\)"
    ):
        assert_all_parameters_optimized(model, stale)
    assert_all_parameters_optimized(model, torch.optim.SGD(model.parameters(), lr=0.1))


def test_decayed_biases_are_named_with_their_decay() -> None:
    model = TwoParts(cut=False)
    with pytest.raises(
        AssertionError,
        match=r"2 of 4 decayed parameters are gains or biases: body.bias has weight_decay 0.1",
    ):
        assert_decay_groups(model, torch.optim.AdamW(model.parameters(), weight_decay=0.1))
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    assert_decay_groups(model, torch.optim.AdamW(groups))


def test_coupled_decay_is_named() -> None:
    parameters = [nn.Parameter(torch.zeros(2))]
    with pytest.raises(
        AssertionError,
        match=r"Adam adds weight_decay 0.01 \(group 0\) to the gradient; expected AdamW",
    ):
        assert_decoupled_decay(torch.optim.Adam(parameters, weight_decay=0.01))
    assert_decoupled_decay(torch.optim.AdamW(parameters, weight_decay=0.01))
    assert_decoupled_decay(torch.optim.SGD(parameters, lr=0.1, weight_decay=0.01))


def test_layers_in_a_plain_list_are_named() -> None:
    with pytest.raises(
        AssertionError, match=r"layers\[0\] is a Linear in a plain list; expected an nn.ModuleList"
    ):
        assert_modules_registered(HiddenLayers(list))
    assert_modules_registered(HiddenLayers(nn.ModuleList))


def test_half_precision_weights_are_named() -> None:
    with pytest.raises(AssertionError, match=r"2 of 2 weights are float16: weight, bias"):
        assert_float32_weights(nn.Linear(2, 2).half())
    assert_float32_weights(nn.Linear(2, 2))

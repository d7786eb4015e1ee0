"""Inputs that are numbers: forecasts of the input itself, blank rows under a mask, tables of
distances.
"""

import torch
from torch import nn

from sawbones.observe.deep import forecast, roles


def test_targets_that_are_the_input_later_are_found_in_every_layout():
    series = torch.randn(4, 13, generator=torch.Generator().manual_seed(0))
    given, goal = series[:, :-1], series[:, 1:]
    assert forecast._ahead(given, goal) == (1, 1, 1)
    assert forecast._ahead(given.t(), goal.t()) == (0, 0, 1)
    features = torch.stack([torch.zeros_like(given), given], -1)
    assert forecast._ahead(features, goal) == (1, 1, 1)
    assert forecast._ahead(features.transpose(1, 2), goal) == (2, 1, 1)


def test_a_copy_a_constant_and_another_series_are_no_forecast():
    series = torch.randn(4, 13, generator=torch.Generator().manual_seed(0))
    assert forecast._ahead(series, series) is None
    assert forecast._ahead(torch.ones(4, 12), torch.ones(4, 12)) is None
    assert forecast._ahead(series, series.flip(1)) is None


class _Call:
    def __init__(self, module: nn.Module, given: torch.Tensor) -> None:
        self.module, self.args, self.kwargs = module, (given,), {}


def test_only_a_window_that_reaches_ahead_moves_earlier_outputs():
    given = torch.randn(3, 1, 12, generator=torch.Generator().manual_seed(1))
    torch.manual_seed(0)
    ahead, behind = (
        nn.Conv1d(1, 1, 3, padding=1),
        nn.Sequential(nn.ConstantPad1d((2, 0), 0.0), nn.Conv1d(1, 1, 3)),
    )
    with torch.no_grad():
        leaking = forecast._perturb(_Call(ahead, given), given, (3, 1, 12), 2, 2)
        causal = forecast._perturb(_Call(behind, given), given, (3, 1, 12), 2, 2)
    assert leaking is not None and leaking["before"] > 0.01
    assert causal is not None and causal["before"] == 0.0 and causal["after"] > 0.01


def test_distances_between_queries_and_keys_are_no_tokens():
    place = torch.arange(6)
    assert roles._is_distance((place[:, None] - place[None, :]).clamp(-3, 3) + 3)
    assert not roles._is_distance(
        torch.randint(0, 9, (6, 6), generator=torch.Generator().manual_seed(2))
    )
    assert not roles._is_distance(torch.full((6, 6), 4))
    # Windows of one stream at a stride of one are the same along the other diagonal.
    assert not roles._is_distance(
        torch.randperm(20, generator=torch.Generator().manual_seed(3)).unfold(0, 6, 1)
    )

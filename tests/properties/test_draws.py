"""Without chance, every draw is the same number in every place."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import distributions as d

from sawbones.properties.draws import NothingDrawn

MEANS = torch.tensor([1.0, 5.0])


@pytest.mark.parametrize(
    ("draw", "numbers"),
    [
        (lambda: torch.randn(2), [0, 0]),
        (lambda: torch.randn_like(MEANS), [0, 0]),
        (lambda: torch.rand(2), [0.5, 0.5]),
        (lambda: torch.empty(2).uniform_(-1, 3), [1, 1]),
        (lambda: torch.empty(2).normal_(3, 2), [3, 3]),
        (lambda: torch.normal(MEANS, 2.0), [1, 5]),
        (lambda: d.Normal(MEANS, 2.0).rsample(), [1, 5]),
        (lambda: torch.bernoulli(torch.tensor([0.0, 0.3])), [0, 1]),
        (lambda: torch.empty(2).bernoulli_(0.2), [1, 1]),
        (lambda: d.Bernoulli(0.3).sample((2,)), [1, 1]),
    ],
)
def test_a_draw_is_the_middle_of_what_it_can_be(
    draw: Callable[[], torch.Tensor], numbers: list[float]
) -> None:
    with NothingDrawn():
        assert draw().tolist() == numbers

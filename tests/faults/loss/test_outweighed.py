"""A reconstruction beside a term that weighs more: told only where the reconstruction is given up."""

from __future__ import annotations

import pytest
import torch
from tests.observe.deep.watching import observe
from torch import nn
from torch.nn import functional as F

from sawbones.faults.loss.reduction_sum.check import check
from sawbones.schema import Ending, Event, Run

ROWS = torch.rand(32, 40, generator=torch.Generator().manual_seed(3))
MEAN = float(ROWS.var(0).mean())  # what the mean of all rows scores


def _mean_of_pixels(given, code):
    return F.mse_loss(given, ROWS) + 0.5 * code.square().sum(1).mean()


def _sum_of_all_codes(given, code):
    return F.mse_loss(given, ROWS) + code.square().sum() / len(ROWS)


def _row_by_row(given, code):
    return ((given - ROWS).square().mean(1) + code.square().sum(1)).mean()


def _alike(given, code):
    return F.mse_loss(given, ROWS) * ROWS.shape[1] + 0.5 * code.square().sum(1).mean()


def _weighed_less(given, code):
    return F.mse_loss(given, ROWS) + 0.001 * code.square().sum(1).mean()


def _said(loss, ends_at: float) -> list[str]:
    torch.manual_seed(0)
    model = nn.ModuleList([nn.Linear(40, 4), nn.Linear(4, 40)])
    with torch.no_grad():
        model[0].weight.mul_(0.01)  # the codes are nearly 0: nothing is left of the other term
        model[0].bias.zero_()

    def step():
        code = model[0](ROWS)
        return loss(model[1](code), code)

    deep = observe(model, step)
    site = deep.losses[0].site
    events = tuple(
        Event(i, "loss", i, 0, "train", float(i), site, 0, {"value": ends_at * (1 + i % 2 / 100)})
        for i in range(240)
    )
    run = Run("train.py", (), "", {}, Ending("finished"), deep=(deep,), events=events)
    return [f.title for f in check(run)]


@pytest.mark.parametrize("loss", [_mean_of_pixels, _sum_of_all_codes, _row_by_row])
def test_a_mean_beside_a_sum_is_outweighed_where_it_is_given_up(loss) -> None:
    titles = ["The reconstruction is outweighed by the term beside it, and given up"]
    assert _said(loss, MEAN) == titles
    assert _said(loss, MEAN / 2) == []


@pytest.mark.parametrize("loss", [_alike, _weighed_less])
def test_terms_that_weigh_alike_or_less_are_not_to_blame(loss) -> None:
    assert _said(loss, MEAN) == []

"""Sequences of numbers: padding that counts in the loss, and forecasts whose targets begin inside
of the window.
"""

import pytest
import torch
from tests.observe.deep.watching import observe
from torch import nn
from torch.nn import functional as F

LENGTHS = torch.tensor([3, 7, 5, 8, 2, 8])
REAL = torch.arange(8) < LENGTHS[:, None]


def _padded():
    gen = torch.Generator().manual_seed(2)
    given = torch.randn(6, 8, 3, generator=gen) * REAL[..., None]
    return given, (2.0 + torch.randn(6, 8, generator=gen)) * REAL


@pytest.mark.parametrize("flat", [False, True])
def test_padded_numbers_that_count_are_seen(flat):
    given, goal = _padded()
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))

    def loss():
        out = model(given).squeeze(-1)
        return F.mse_loss(out.flatten(), goal.flatten()) if flat else F.mse_loss(out, goal)

    (found,) = observe(model, loss).losses
    blank = found.facts.blank
    assert blank.rows == blank.counted == int((~REAL).sum())
    assert blank.weight_share == pytest.approx(float((~REAL).float().mean()), rel=1e-3)
    assert blank.target == 0.0 and blank.target_share == 1.0 and blank.elsewhere == 0.0


def test_padded_numbers_that_a_mask_leaves_out_weigh_nothing():
    given, goal = _padded()
    model = nn.Linear(3, 1)
    mask = REAL.float()
    (found,) = observe(
        model,
        lambda: (
            (F.mse_loss(model(given).squeeze(-1), goal, reduction="none") * mask).sum() / mask.sum()
        ),
    ).losses
    assert found.facts.blank.counted == 0 and found.facts.blank.weight_share == 0.0


def _window(start, horizon=3, features=False):
    series = torch.randn(40, generator=torch.Generator().manual_seed(4))
    past = torch.stack([series[i : i + 10] for i in range(20)])
    goal = torch.stack([series[i + start : i + start + horizon] for i in range(20)])
    model = nn.Sequential(nn.Flatten(), nn.Linear(20 if features else 10, horizon))
    given = torch.stack([torch.ones_like(past), past], -1) if features else past[..., None]
    return observe(model, lambda: F.mse_loss(model(given), goal), probe=True).probes.get("window")


def test_a_target_that_begins_inside_of_the_window_is_seen():
    assert _window(9)["common"] == 1 and _window(8, features=True)["common"] == 2
    assert _window(9, horizon=1)["horizon"] == 1


def test_a_target_behind_the_window_is_not():
    assert _window(10) is None and _window(12) is None and _window(10, features=True) is None

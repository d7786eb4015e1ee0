"""An autoencoder that answers the same to every row although its loss falls."""

from __future__ import annotations

import pytest
import torch
from tests.observe.deep.watching import observe
from torch import nn
from torch.nn import functional as F

from sawbones.schema import Ending, Event, Run
from sawbones.stats.levels import level
from sawbones.stats.reconstruction import reconstructions
from sawbones.symptoms.does_not_learn import _gives_back_the_mean

ROWS = torch.rand(64, 12, generator=torch.Generator().manual_seed(3))
OTHERS = torch.rand(64, 12, generator=torch.Generator().manual_seed(4))


def _run(target: torch.Tensor, ends_at: float, steps: int = 240) -> Run:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 4), nn.Tanh(), nn.Linear(4, 12))
    deep = observe(model, lambda: F.mse_loss(model(ROWS), target))
    noise = 0.01 * ends_at * torch.randn(steps, generator=torch.Generator().manual_seed(1))
    site = deep.losses[0].site
    events = tuple(
        Event(i, "loss", i, 0, "train", float(i), site, 0, {"value": ends_at + float(noise[i])})
        for i in range(steps)
    )
    return Run("train.py", (), "", {}, Ending("finished"), deep=(deep,), events=events)


def test_a_reconstruction_no_better_than_the_mean_of_all_rows_is_ill() -> None:
    mean = float(ROWS.var(0).mean())
    (term,) = reconstructions(_run(ROWS, mean))
    assert term.same_for_all == pytest.approx(mean) and level(term.losses).mean > 0
    assert _gives_back_the_mean(_run(ROWS, mean)) is not None


@pytest.mark.parametrize(
    "target, share, steps",
    [(ROWS, 0.8, 240), (ROWS, 1.0, 100), (OTHERS, 1.0, 240)],
    ids=["better", "too-few-steps", "another-target"],
)
def test_what_learns_is_too_short_or_no_reconstruction_is_silent(target, share, steps) -> None:
    run = _run(target, share * float(target.var(0).mean()), steps)
    assert _gives_back_the_mean(run) is None

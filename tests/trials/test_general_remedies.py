"""Remedies that heal much: what counts as a cure, and when more than one cause is left."""

from __future__ import annotations

import math

import pytest
import torch
from tests.observe.deep.watching import observe
from torch import nn
from torch.nn import functional as F

from sawbones.faults.optimizer.lr_too_high.trial import scale_is_known
from sawbones.schema import Ending, Optimizer, Run
from sawbones.trials.side_by_side import Pair

X = torch.randn(16, 5, generator=torch.Generator().manual_seed(1))
Y = torch.arange(16) % 4
SGD, ADAM = {"lr": 0.1, "momentum": 0.9, "nesterov": False}, {"lr": 0.1, "betas": [0.9, 0.99]}


@pytest.mark.parametrize(
    ("was", "now", "cured"),
    [
        (400.0, 20.0, True),
        (math.inf, 20.0, True),
        (4e7, 3e6, False),  # far lower, and far above where it began
        (math.inf, 3e6, False),
        (20.0, 19.0, False),
    ],
)
def test_a_run_that_climbs_more_slowly_is_not_cured(was: float, now: float, cured: bool) -> None:
    assert Pair(100, 160.0, was, now).cured(0.15) is cured


@pytest.mark.parametrize(
    ("reduction", "settings", "known"),
    [("mean", SGD, True), ("sum", SGD, False), ("sum", ADAM, True)],
)
def test_a_smaller_rate_decides_where_the_scale_of_the_loss_is_known(
    reduction: str, settings: dict[str, object], known: bool
) -> None:
    model = nn.Linear(5, 4)
    deep = observe(model, lambda: F.cross_entropy(model(X), Y, reduction=reduction))
    optimizers = (Optimizer(0, "Any", settings, (settings,)),)
    run = Run("train.py", (), "", {}, Ending("finished"), deep=(deep,), optimizers=optimizers)
    assert scale_is_known(run) is known

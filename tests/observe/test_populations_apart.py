"""Which populations are compared, and whether rows of two of them lie together."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.func import functional_call

from sawbones.observe.populations.comparing import compare_passes
from sawbones.observe.populations.log import PassLog
from sawbones.observe.populations.shifting import moved_together
from sawbones.observe.sites import SiteFinder


def test_tasks_that_a_model_is_adapted_to_one_by_one_are_not_compared() -> None:
    log, net = PassLog(SiteFinder("")), nn.Linear(1, 1)
    make_call = nn.Linear.__call__

    class Seen(nn.Linear):
        def __call__(self, rows: torch.Tensor) -> torch.Tensor:
            answers: torch.Tensor = make_call(self, rows)
            log.answered(self, ((rows,), {}), answers)
            return answers

    net = Seen(1, 1)
    log.trains(net, ((torch.randn(20, 1),), {}))
    drawn = torch.Generator().manual_seed(0)
    for slope in (0.0, 5.0):
        rows = torch.randn(100, 1, generator=drawn)
        own = {name: p.detach().clone() for name, p in net.named_parameters()}
        with torch.no_grad():
            functional_call(net, own, (rows,))
        log.asked((slope + rows + torch.randn(100, 1, generator=drawn)).squeeze(1))
    populations = compare_passes(log)
    assert len([p for p in populations.passes if p.kind]) == 2
    assert not populations.worse


def test_columns_that_lie_together_in_another_way_show_in_the_nearest_neighbours() -> None:
    drawn = np.random.default_rng(0)
    first, second = drawn.normal(size=(2, 400, 1)).astype(np.float32)
    noise = 0.1 * drawn.normal(size=(2, 400, 1)).astype(np.float32)
    rising = np.concatenate([first, first + noise[0]], 1)
    falling = np.concatenate([second, noise[1] - second], 1)
    assert moved_together(rising, falling, 0.01) > 0.5
    assert moved_together(rising[:200], rising[200:], 0.01) < 0.1

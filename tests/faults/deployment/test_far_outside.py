"""A feature of windows that comes in another unit, beside others that only drift."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from sawbones.evidence.populations import kind_of
from sawbones.faults.deployment.pipeline_drift.check import check
from sawbones.observe.populations.comparing import compare_passes
from sawbones.observe.populations.log import PassLog
from sawbones.observe.sites import SiteFinder
from sawbones.schema import Ending, Run
from sawbones.schema.populations import WorsePair

LEVEL, FEATURE, STEPS = 4.0, 2, 6
drawn = torch.Generator().manual_seed(0)


class Levels(nn.Module):
    """Says what the last step of one feature is, and by how much the others count."""

    def __init__(self) -> None:
        super().__init__()
        self.share = nn.Parameter(torch.tensor(0.1))

    def forward(self, windows: Tensor) -> Tensor:
        return windows[:, -1, FEATURE] + self.share * windows[:, -1, 0]


def windows(number: int, drift: float = 0.0) -> Tensor:
    rows = torch.randn(number, STEPS, 4, generator=drawn) + drift
    rows[:, :, FEATURE] += LEVEL
    return rows


def compared(later: Tensor, wanted: Tensor) -> tuple[WorsePair, list[str]]:
    """The far worse population, and the status of what is said of it."""
    log, model = PassLog(SiteFinder("")), Levels()
    log.trains(model, ((windows(50),), {}))
    usual = windows(400)
    for rows, asked in ((usual, usual[:, -1, FEATURE]), (later, wanted)):
        log.answered(model, ((rows,), {}), model(rows).detach())
        log.asked(asked)
    populations = compare_passes(log)
    run = Run("train.py", (), "", {}, Ending("finished"))
    return populations.worse[0], [f.status for f in check(replace(run, populations=populations))]


def test_another_unit_is_likely_although_all_features_drift() -> None:
    later = windows(400, drift=1.0)
    wanted = later[:, -1, FEATURE].clone()
    later[:, :, FEATURE] *= 100
    pair, said = compared(later, wanted)
    assert pair.num_columns == pair.width
    assert said == ["likely"]


@pytest.mark.parametrize("factor", [4.0, 10.0])
def test_a_feature_that_is_wider_by_a_few_times_is_a_suspicion(factor: float) -> None:
    later = windows(400)
    wanted = later[:, -1, FEATURE].clone()
    later[:, :, FEATURE] *= factor
    assert compared(later, wanted)[1] == ["suspected"]


def test_another_world_is_no_other_unit() -> None:
    later = windows(400, drift=9.0)
    pair, said = compared(later, later[:, -1, FEATURE] + 4)
    assert kind_of(pair) == "deployment.covariate-shift"
    assert said == []


def test_a_few_outliers_are_no_other_unit_for_certain() -> None:
    later = windows(400)
    wanted = later[:, -1, FEATURE].clone()
    some = torch.from_numpy(np.random.default_rng(0).random(400) < 0.25)
    later[some] = torch.cat([later[some][:, :, :2], 900 * later[some][:, :, 2:]], 2)
    assert "likely" not in compared(later, wanted)[1]

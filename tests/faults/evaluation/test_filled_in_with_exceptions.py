"""A column that is written when the event takes place, in most rows of one class, and in some of the
other.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sawbones.faults.evaluation.leak_target.check import check
from sawbones.observe.populations.comparing import compare_passes
from sawbones.observe.populations.log import PassLog
from sawbones.observe.sites import SiteFinder
from sawbones.schema import Ending, Run

Column = npt.NDArray[np.float64]
ROWS = 4000
drawn = np.random.default_rng(1)


class Reads(nn.Module):
    """Says yes where the first column is above a number."""

    def __init__(self) -> None:
        super().__init__()
        self.above = nn.Parameter(torch.tensor(0.01))

    def forward(self, rows: Tensor) -> Tensor:
        return rows[:, 0] - self.above


def said(amount: Column, left: npt.NDArray[np.bool_]) -> list[str]:
    rows = torch.tensor(np.column_stack([amount, drawn.normal(size=(ROWS, 3))])).float()
    log, model = PassLog(SiteFinder("")), Reads()
    log.trains(model, ((torch.randn(50, 4),), {}))
    log.answered(model, ((rows,), {}), model(rows).detach())
    log.asked(torch.tensor(left).float())
    run = Run("train.py", (), "", {}, Ending("finished"))
    return [f.status for f in check(replace(run, populations=compare_passes(log)))]


def test_a_field_that_is_filled_in_after_the_event_is_suspected_in_spite_of_exceptions() -> None:
    left = drawn.random(ROWS) < 0.3
    paid_out = drawn.random(ROWS) < np.where(left, 0.93, 0.04)
    assert said(paid_out * drawn.gamma(2.0, 20.0, ROWS), left) == ["suspected"]


def test_a_strong_cause_that_is_cut_off_at_zero_is_at_most_suspected() -> None:
    strain = drawn.normal(-0.4, 1.0, ROWS)
    for noise in (0.1, 0.15, 0.2, 0.3):
        breaks = strain + noise * drawn.normal(size=ROWS) > 0
        assert "likely" not in said(np.maximum(strain, 0), breaks)


def test_a_cause_in_two_heaps_is_at_most_suspected() -> None:
    smokes = drawn.random(ROWS) < 0.4
    years = smokes * drawn.gamma(4.0, 6.0, ROWS)
    risk = 1 / (1 + np.exp(-(0.35 * years - 3.5)))
    assert "likely" not in said(years, drawn.random(ROWS) < risk)

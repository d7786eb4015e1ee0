"""Two models that take turns: one whose own step cuts it off, and one where only the other does."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died

from sawbones.faults.model.detached_graph.check import check

TURNS = """
import torch
from torch import nn

torch.manual_seed(0)
maker, judge = nn.Linear(3, 2), nn.Linear(2, 1)
first = torch.optim.Adam(maker.parameters(), lr=1e-3)
second = torch.optim.Adam(judge.parameters(), lr=1e-3)
loss_of = nn.BCEWithLogitsLoss()
for _ in range(8):
    made = maker(torch.randn(16, 3))
    loss = loss_of(judge(torch.randn(16, 2)), torch.ones(16, 1))
    loss = loss + loss_of(judge(made.detach()), torch.zeros(16, 1))
    second.zero_grad()
    loss.backward()
    second.step()
    wanted = loss_of(judge(made{cut}), torch.ones(16, 1))
    first.zero_grad()
    wanted.backward()
    first.step()
"""


def test_a_model_that_its_own_step_cuts_off_is_proven_at_the_cut(tmp_path: Path) -> None:
    run = died(tmp_path, TURNS.format(cut=".detach()"))
    (found,) = check(run)
    line = TURNS.split("\n").index("    wanted = loss_of(judge(made{cut}), torch.ones(16, 1))") + 1
    assert found.status == "proven" and found.where[0].line == line


@pytest.mark.parametrize("cut", ["", ".clone()"])
def test_a_model_that_only_the_others_step_cuts_off_is_silent(cut: str, tmp_path: Path) -> None:
    assert not list(check(died(tmp_path, TURNS.format(cut=cut))))

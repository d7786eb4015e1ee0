"""Outputs that each say whether the class lies beyond one of the borders."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died

from sawbones.evidence import NothingToJudge
from sawbones.faults.evaluation.collapsed_prediction.check import check

BORDERS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(500, 6)
level = (2 * x[:, 0] + 2).round().clamp(0, 4).long()
train = DataLoader(TensorDataset(x[:400], level[:400]), batch_size=40)
held = DataLoader(TensorDataset(x[400:], level[400:]), batch_size=100)

class Ladder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 1)
        self.borders = nn.Parameter(torch.tensor([1.5, 0.5, -0.5, -1.5]))

    def forward(self, x):
        return self.body(x) + self.borders

ladder = Ladder()
optimizer = torch.optim.Adam(ladder.parameters(), lr=3e-2)
for epoch in range(4):
    for rows, levels in train:
        beyond = (levels[:, None] > torch.arange(4)).float()
        loss = nn.functional.binary_cross_entropy_with_logits(ladder(rows), beyond)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        for rows, levels in held:
            told = torch.sigmoid(ladder(rows))
            right = ((told > 0.5).sum(1) == levels).float().mean()
"""


def test_the_largest_of_fewer_outputs_than_classes_is_no_answer(tmp_path: Path) -> None:
    run = died(tmp_path, BORDERS)
    assert run.ending.kind == "finished"
    try:
        assert not list(check(run))
    except NothingToJudge:
        pytest.fail("its evaluations were not seen")

"""A model that is asked for its answers at other times than in training."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died

from sawbones.evidence import NothingToJudge
from sawbones.faults.evaluation.preprocessing_mismatch.check import check

FLOW = """
import torch
from torch import nn

times = torch.linspace(0, 15, 150)
path = torch.stack([torch.cos(times), torch.sin(times)], 1)

class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.slope = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))

    def forward(self, begin, times):
        seen = [begin]
        for step in times.diff():
            seen.append(seen[-1] + step * self.slope(seen[-1]))
        return torch.stack(seen)

flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=3e-3)
for turn in range(40):
    begins = torch.randint(0, 140, (12,))
    wanted = torch.stack([path[begins + k] for k in range(8)])
    loss = nn.functional.mse_loss(flow({scale} * path[begins], times[:8]), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if turn % 10 == 9:
        with torch.no_grad():
            far = nn.functional.mse_loss(flow(path[:20], times[:60]), path[None, :20].expand(60, -1, -1))
"""


@pytest.mark.parametrize(("scale", "num"), [("1", 0), ("9", 1)])
def test_longer_times_are_no_other_preparation(scale: str, num: int, tmp_path: Path) -> None:
    run = died(tmp_path, FLOW.replace("{scale}", scale))
    assert run.ending.kind == "finished"
    try:
        found = list(check(run))
    except NothingToJudge:
        found = []
    assert len(found) == num

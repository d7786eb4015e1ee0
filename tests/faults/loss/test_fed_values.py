"""A forecaster whose decoder is now and then fed the truth: the value of this step, or of the last."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died

from sawbones.faults.loss.target_in_input.check import check

TIDES = """
import random
import torch
from torch import nn

random.seed(1)
torch.manual_seed(1)

class Tide(nn.Module):
    def __init__(self):
        super().__init__()
        self.look, self.turn = nn.LSTM(1, 12, batch_first=True), nn.LSTMCell(1, 12)
        self.calm, self.level = nn.Dropout(0.2), nn.Linear(12, 1)

    def forward(self, before, truth=None):
        _, (h, c) = self.look(before.unsqueeze(-1))
        state, fed, told = (h[0], c[0]), before[:, -1:], []
        for t in range(10):
            help = self.training and truth is not None and random.random() < 0.5
            if help and {first}:
                fed = truth[:, t : t + 1]
            state = self.turn(fed, state)
            fed = self.level(self.calm(state[0]))
            told.append(fed)
            if help and not {first}:
                fed = truth[:, t : t + 1]
        return torch.cat(told, 1)

net = Tide()
waves = torch.sin(torch.arange(26) * 0.5 + 6 * torch.rand(320, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for rows in waves.split(16):
    loss = nn.functional.mse_loss(net(rows[:, :16], rows[:, 16:]), rows[:, 16:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("first", [True, False])
def test_a_coin_that_feeds_the_value_of_the_same_step_is_seen(first: bool, tmp_path: Path) -> None:
    found = list(check(died(tmp_path, TIDES.format(first=first))))
    assert ["fed the value" in one.title for one in found] == [True] * first

"""A forecaster whose decoder is now and then fed the truth: the value of this step, or of the last."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died

from sawbones.evidence import NothingToJudge
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


ROADS = """
import random
import torch
from torch import nn

random.seed(2)
torch.manual_seed(2)

class Roads(nn.Module):
    def __init__(self):
        super().__init__()
        self.look, self.turn = nn.GRU(3, 16, batch_first=True), nn.GRUCell(3, 16)
        self.level = nn.Linear(16, 3)

    def forward(self, before, truth=None):
        _, h = self.look(before)
        state, fed, told = h[0], before[:, -1], []
        for t in range(8):
            help = self.training and truth is not None and random.random() < 0.7
            if help and {first}:
                fed = truth[:, t]
            state = self.turn(fed, state)
            fed = self.level(state)
            told.append(fed)
            if help and not {first}:
                fed = truth[:, t]
        return torch.stack(told, 1)

class Redraw(nn.Module):
    def __init__(self):
        super().__init__()
        self.look, self.level = nn.GRU(5, 16, batch_first=True), nn.Linear(16, 3)

    def forward(self, kind, drawn):
        told = kind[:, None].expand(-1, drawn.shape[1], -1)
        return self.level(self.look(torch.cat([drawn, told], -1))[0])

net = {network}()
waves = torch.sin(torch.arange(24)[:, None] * torch.tensor([0.5, 0.7, 0.2]) + 6 * torch.rand(320, 1, 1))
kinds = torch.rand(320, 2)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for rows, kind in zip(waves.split(16), kinds.split(16)):
    given = rows[:, :16] if {forecasts} else kind
    loss = nn.functional.mse_loss(net(given, rows[:, 16:]), rows[:, 16:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("first", [True, False])
def test_so_is_one_that_forecasts_several_values_at_a_time(first: bool, tmp_path: Path) -> None:
    roads = ROADS.format(first=first, network="Roads", forecasts=True)
    found = list(check(died(tmp_path, roads)))
    assert ["fed the value" in one.title for one in found] == [True] * first


def test_a_network_that_gives_back_its_input_forecasts_nothing(tmp_path: Path) -> None:
    redraw = ROADS.format(first=False, network="Redraw", forecasts=False)
    try:
        assert not list(check(died(tmp_path, redraw)))
    except NothingToJudge:
        pass

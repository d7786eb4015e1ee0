"""Gradients that fade on the way to the first layers, and routing weights that get little of them
beside layers that get all.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died

from sawbones.faults.model.vanishing_gradients.check import check

LOOKING = """
import torch
from torch import nn

class Looking(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(30, 24)
        self.calm = nn.LayerNorm(24)
        self.ask, self.key, self.take = (nn.Linear(24, 24) for _ in range(3))
        self.wide, self.back = nn.Linear(24, 48), nn.Linear(48, 24)
        self.pooled, self.head = nn.Linear(24, 24), nn.Linear(24, 3)
        for part in (self.ask, self.key, self.take, self.wide, self.back):
            nn.init.normal_(part.weight, std=0.02)

    def forward(self, ids):
        h = self.calm(self.words(ids))
        seen = (self.ask(h) @ self.key(h).transpose(1, 2) / 24**0.5).softmax(-1)
        h = h + seen @ self.take(h)
        h = h + self.back(torch.relu(self.wide(h)))
        return self.head(torch.tanh(4 * self.pooled(h[:, 0])))

net = Looking()
rows = torch.randint(0, 30, (160, 8))
kinds = rows[:, 0] % 3
"""
STACK = """
import torch
from torch import nn

layers = [nn.Linear(12, 24), nn.LayerNorm(24)]
for _ in range(12):
    layers += [nn.Linear(24, 24), nn.{kind}()]
    nn.init.kaiming_normal_(layers[-2].weight)
net = nn.Sequential(*layers, nn.Linear(24, 3))
rows = torch.randn(160, 12)
kinds = rows[:, :3].argmax(1)
"""
LOOP = """
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(10):
    part = slice(16 * step, 16 * step + 16)
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(rows[part]), kinds[part]).backward()
    optimizer.step()
"""


def test_queries_and_keys_that_get_little_are_no_fading(tmp_path: Path) -> None:
    assert not list(check(died(tmp_path, LOOKING + LOOP)))


@pytest.mark.parametrize(("kind", "fades"), [("Sigmoid", True), ("ReLU", False)])
def test_a_gain_in_front_of_a_fading_stack_fades_with_it(
    kind: str, fades: bool, tmp_path: Path
) -> None:
    found = list(check(died(tmp_path, STACK.format(kind=kind) + LOOP)))
    assert [f.status for f in found] == ["likely"] * fades

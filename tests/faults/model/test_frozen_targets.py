"""Frozen parameters among those of an optimizer: averages that the script writes itself, and a
block that nobody writes.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died

from sawbones.faults.model.frozen_params.check import check

PAIR = """
import copy
import torch
from torch import nn

class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 4))
        self.slow = copy.deepcopy(self.online).requires_grad_(False)
        self.guess = nn.Linear(4, 4)

    def forward(self, x):
        return self.guess(self.online(x + 0.1 * torch.randn_like(x))), self.slow(x)

pair = Pair()
optimizer = torch.optim.Adam(pair.parameters(), lr=3e-3)
for x in torch.randn(40, 16, 6):
    guess, wanted = pair(x)
    loss = 1 - nn.functional.cosine_similarity(guess, wanted).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for slow, quick in zip(pair.slow.parameters(), pair.online.parameters()):
        {written}
"""


@pytest.mark.parametrize(
    ("written", "silent"),
    [
        ("slow.data = 0.99 * slow.data + 0.01 * quick.data", True),
        ("slow.data.lerp_(quick.data, 0.01)", True),
        ("pass", False),
    ],
)
def test_an_average_that_the_script_writes_is_frozen_on_purpose(
    written: str, silent: bool, tmp_path: Path
) -> None:
    found = list(check(died(tmp_path, PAIR.format(written=written))))
    assert bool(found) != silent

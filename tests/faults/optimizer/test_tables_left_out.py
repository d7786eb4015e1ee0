"""Parts in front that no optimizer holds: random tables are forgotten, learned ones are kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died

from sawbones.faults.optimizer.missing_params.check import check

SCRIPT = """
import torch
from torch import nn

torch.manual_seed(0)


class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows, self.columns = nn.Embedding(20, 8), nn.Embedding(30, 8)
        nn.init.normal_(self.rows.weight, std=1.0)
        nn.init.normal_(self.columns.weight, std=1.0)
        self.wide = nn.Linear(16, 16)
        self.layers = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, row, column):
        both = torch.cat([self.rows(row), self.columns(column)], -1)
        return self.layers(self.wide(both)).squeeze(-1)


model = Scores()
coins, high = (torch.rand(500) < 0.5).float(), (torch.arange(20) > 9).float()
{before}
optimizer = torch.optim.Adam({held}, lr=3e-2)
for _ in range(60):
    rows, columns = torch.randint(0, 20, (32,)), torch.randint(0, 30, (32,))
    loss = nn.functional.mse_loss(model(rows, columns), {targets})
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
BEHIND_TABLES = "[*model.wide.parameters(), *model.layers.parameters()]"
CHANCE = "coins[torch.randint(0, 500, (32,))]"
LOADED = """
kept = __import__("io").BytesIO()
torch.save(model.state_dict(), kept)
kept.seek(0)
model.load_state_dict(torch.load(kept))
"""


@pytest.mark.parametrize(
    ("before", "held", "targets", "status"),
    [
        ("", BEHIND_TABLES, CHANCE, "likely"),
        ("", BEHIND_TABLES, "high[rows]", "suspected"),  # learned on top of them
        (LOADED, BEHIND_TABLES, CHANCE, "suspected"),
        ("", "model.layers.parameters()", CHANCE, "suspected"),  # a head on top of a whole front
    ],
)
def test_only_random_tables_in_front_are_likely_forgotten(
    tmp_path: Path, before: str, held: str, targets: str, status: str
) -> None:
    (found,) = check(died(tmp_path, SCRIPT.format(before=before, held=held, targets=targets)))
    assert found.status == status


def test_a_model_that_is_held_whole_is_silent(tmp_path: Path) -> None:
    assert not list(
        check(died(tmp_path, SCRIPT.format(before="", held="model.parameters()", targets=CHANCE)))
    )

"""Sequences that are given one at a time, as (time, 1, features), and batches of which a recurrent
layer makes such a sequence.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died

from sawbones.faults.model.cross_sample_leak.check import check

TAGGER = """
import torch
from torch import nn

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.look, self.read, self.tell = nn.Embedding(30, 8), nn.LSTM(8, 12), nn.Linear(12, 5)

    def forward(self, words):
        seen = self.look(words)
        return self.tell(self.read(seen.view(len(words), 1, -1))[0].view(len(words), -1))

tagger = Tagger()
optimizer = torch.optim.SGD(tagger.parameters(), lr=0.1)
for turn in range(40):
    words = torch.randint(0, 30, (5 + turn % 2,))
    loss = nn.functional.cross_entropy(tagger(words), words % 5)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

ROWS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.read, self.tell = nn.GRU(6, 12), nn.Linear(12, 1)

    def forward(self, rows):
        return self.tell(self.read(rows.unsqueeze(1))[0][:, 0])

x = torch.randn(240, 6)
y = x[:, :1] * 2
reader = Reader()
optimizer = torch.optim.Adam(reader.parameters(), lr=1e-2)
for turn in range(3):
    for rows, wanted in {batches}:
        loss = nn.functional.mse_loss(reader(rows), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
LOADED = "DataLoader(TensorDataset(x, y), batch_size=24, shuffle=True)"
PICKED = "((x[mine], y[mine]) for mine in torch.randperm(240).split(24))"
LENGTHS = "[(x[a : a + 20 + a % 7], y[a : a + 20 + a % 7]) for a in range(0, 200, 9)]"


def test_the_words_of_a_sentence_are_no_examples(tmp_path: Path) -> None:
    assert not list(check(died(tmp_path, TAGGER)))


@pytest.mark.parametrize(
    ("batches", "statuses"),
    [(LOADED, ["proven"]), (PICKED, ["proven"]), (LENGTHS, [])],
    ids=["loader", "picked", "many lengths"],
)
def test_rows_that_a_loader_put_side_by_side_are_examples(
    batches: str, statuses: list[str], tmp_path: Path
) -> None:
    found = check(died(tmp_path, ROWS.replace("{batches}", batches)))
    assert [one.status for one in found] == statuses

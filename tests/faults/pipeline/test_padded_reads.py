"""A recurrent net over rows of numbers that are filled up with zeros, and the position that is
read."""

from __future__ import annotations

import torch
from tests.observe.deep.watching import observe
from torch import nn
from torch.nn import functional as F

from sawbones.faults import read
from sawbones.schema import Ending, Run

LENGTHS = torch.randint(4, 12, (24,), generator=torch.Generator().manual_seed(4))
WIDTH = 12
ROWS = torch.randn(24, WIDTH, 3, generator=torch.Generator().manual_seed(5))
RIGHT = ROWS * (torch.arange(WIDTH) < LENGTHS[:, None])[..., None]
LEFT = ROWS * (torch.arange(WIDTH) >= WIDTH - LENGTHS[:, None])[..., None]
KINDS = torch.randint(0, 3, (24,), generator=torch.Generator().manual_seed(6))


class Reader(nn.Module):
    def __init__(self, by: str) -> None:
        super().__init__()
        self.rnn, self.head = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 3)
        self.by = by

    def forward(self, rows, lengths=None):
        states, last = self.rnn(rows)
        if self.by == "state":
            return self.head(last[-1])
        if self.by == "length":
            return self.head(states[torch.arange(len(rows)), lengths - 1])
        return self.head(states[:, -1])


def _said(rows: torch.Tensor, *lengths: torch.Tensor, by: str = "position") -> list[str]:
    torch.manual_seed(0)
    model = Reader(by)
    deep = observe(model, lambda: F.cross_entropy(model(rows, *lengths), KINDS))
    run = Run("train.py", (), "", {}, Ending("finished"), deep=(deep, deep))
    return [f.status for f in read(run, "pipeline.padding-side").findings]


def test_the_last_state_of_rows_whose_lengths_are_given_is_that_of_padding() -> None:
    assert _said(RIGHT, LENGTHS) == ["proven"]


def test_so_is_the_state_that_a_recurrent_layer_ends_with() -> None:
    assert _said(RIGHT, LENGTHS, by="state") == ["proven"]
    assert _said(LEFT, LENGTHS, by="state") == []


def test_without_lengths_zeros_may_be_values() -> None:
    assert _said(RIGHT) == ["suspected"]


def test_the_last_real_state_and_padding_on_the_left_are_silent() -> None:
    assert _said(RIGHT, LENGTHS, by="length") == []
    assert _said(LEFT, LENGTHS) == []


def test_rows_without_padding_are_silent() -> None:
    assert _said(ROWS, torch.full((24,), WIDTH)) == []

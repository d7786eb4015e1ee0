"""Lengths that take padding along when rows are packed, and ends of texts that look like it."""

from __future__ import annotations

import pytest
import torch
from tests.observe.deep.watching import observe
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence

from sawbones.faults import read
from sawbones.schema import Ending, Run

FAULT = "pipeline.mask-mismatch"
LENGTHS = torch.tensor([9, 4, 6, 5, 9, 3, 7, 8, 6, 5, 4, 7])
WORDS = torch.randint(1, 20, (12, 9), generator=torch.Generator().manual_seed(5))
WORDS = WORDS * (torch.arange(9) < LENGTHS[:, None])


class Judge(nn.Module):
    def __init__(self, padding_idx: int | None) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 6, padding_idx=padding_idx)
        self.layer, self.out = nn.LSTM(6, 7, batch_first=True), nn.Linear(7, 2)

    def forward(self, lengths: Tensor) -> Tensor:
        rows = self.words(WORDS)
        packed = pack_padded_sequence(rows, lengths, batch_first=True, enforce_sorted=False)
        return self.out(self.layer(packed)[1][0][0])


def seen(lengths: Tensor, padding_idx: int | None = 0) -> Run:
    model = Judge(padding_idx)
    goal = torch.arange(12) % 2
    deep = observe(model, lambda: functional.cross_entropy(model(lengths), goal))
    return Run("train.py", (), "", {}, Ending("finished"), deep=(deep,))


def test_one_place_of_padding_in_every_shorter_row_is_likely() -> None:
    (found,) = read(seen((LENGTHS + 1).clamp(max=9)), FAULT).findings
    assert found.status == "likely" and "one place of padding" in found.title
    assert "pack_padded_sequence" in found.where[-1].code


@pytest.mark.parametrize(
    ("lengths", "padding_idx"),
    [
        (LENGTHS, 0),
        # an end of text may have the id of padding where it is learned
        ((LENGTHS + 1).clamp(max=9), None),
        # the longest row of a batch may stand for all
        (torch.full((12,), 9), 0),
    ],
)
def test_lengths_that_fit_or_may_be_meant_are_left_alone(lengths: Tensor, padding_idx) -> None:
    assert not read(seen(lengths, padding_idx), FAULT).findings

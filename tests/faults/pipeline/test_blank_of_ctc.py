"""A CTC loss whose blank is a label, and padded labels that only look like it."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died

from sawbones.faults.pipeline.special_tokens.check import check

SCRIPT = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_of = nn.CTCLoss({blank})
labels = torch.tensor({labels})
lengths = {lengths}
frames = (9, 9) if isinstance(lengths, tuple) else torch.tensor([9, 9])
for _ in range(8):
    scores = model(torch.randn(9, 2, 5)).log_softmax(-1)
    loss = loss_of(scores, labels, frames, lengths)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
JOINED = "[0, 1, 2, 1, 2]"
PADDED = "[[1, 2, 3], [2, 1, 0]]"


@pytest.mark.parametrize(
    ("labels", "lengths"),
    [(JOINED, "torch.tensor([3, 2])"), (JOINED, "(3, 2)"), (PADDED, "torch.tensor([3, 3])")],
)
def test_a_label_that_is_the_blank_is_proven_where_the_loss_is_built(
    tmp_path: Path, labels: str, lengths: str
) -> None:
    (found,) = check(died(tmp_path, SCRIPT.format(blank="", labels=labels, lengths=lengths)))
    assert found.status == "proven" and "CTCLoss" in found.where[0].code


@pytest.mark.parametrize(
    ("blank", "labels", "lengths"),
    [("blank=3", JOINED, "torch.tensor([3, 2])"), ("", PADDED, "torch.tensor([3, 2])")],
)
def test_another_blank_or_padding_behind_the_labels_is_silent(
    tmp_path: Path, blank: str, labels: str, lengths: str
) -> None:
    assert not list(
        check(died(tmp_path, SCRIPT.format(blank=blank, labels=labels, lengths=lengths)))
    )

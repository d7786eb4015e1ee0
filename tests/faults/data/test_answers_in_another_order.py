"""Models that sort their batch by length: put back, not put back, and targets that follow."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died

from sawbones.evidence import NothingToJudge
from sawbones.faults.data.labels_misaligned.check import check
from sawbones.faults.model.cross_sample_leak.check import check as mixes
from sawbones.schema import Finding, Run

SORTED = """
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

length = torch.randint(4, 16, (192,))
kind = torch.randint(0, 4, (192,))
ids = torch.randint(5, 40, (192, 16)) * (torch.arange(16) < length[:, None])
ids[:, 1] = 40 + kind

class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.look, self.read = nn.Embedding(48, 12, padding_idx=0), nn.GRU(12, 16, batch_first=True)
        self.tell = nn.Linear(16, 4)

    def forward(self, ids, lengths):
        order = {order}
        packed = pack_padded_sequence(self.look({rows}), lengths[order], batch_first=True)
        said = self.tell(self.read(packed)[1][-1])
        return {answer}

reader = Reader()
optimizer = torch.optim.Adam(reader.parameters(), lr=3e-3)
for epoch in range(2):
    for mine in torch.randperm(192).split(32):
        answer = reader(ids[mine], length[mine])
        loss = nn.functional.cross_entropy({loss})
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
ARGSORT = "lengths.argsort(descending=True)"
BY_HAND = "sorted(range(len(lengths)), key=lambda i: -int(lengths[i]))"
PUT_BACK = "said[torch.as_tensor(order).argsort()]"


def _run(folder: Path, order: str, rows: str, answer: str, loss: str = "answer, kind[mine]") -> Run:
    return died(folder, SORTED.format(order=order, rows=rows, answer=answer, loss=loss))


def _found(run: Run) -> list[Finding]:
    try:
        return [f for f in check(run) if "another order" in f.title]
    except NothingToJudge:
        return []


@pytest.mark.parametrize("rows", ["ids[order]", "torch.stack([ids[i] for i in order])"])
@pytest.mark.parametrize("order", [ARGSORT, BY_HAND])
def test_answers_in_the_order_of_lengths(order: str, rows: str, tmp_path: Path) -> None:
    found = _found(_run(tmp_path, order, rows, "said"))
    assert len(found) == 1
    assert "argsort" in str(found[0].fix)


@pytest.mark.parametrize("rows", ["ids[order]", "torch.stack([ids[i] for i in order])"])
@pytest.mark.parametrize("order", [ARGSORT, BY_HAND])
def test_answers_that_are_put_back_are_in_order_and_do_not_mix(
    order: str, rows: str, tmp_path: Path
) -> None:
    run = _run(tmp_path, order, rows, PUT_BACK)
    assert not _found(run)
    assert not list(mixes(run))


@pytest.mark.parametrize(
    ("answer", "loss"),
    [
        ("said, order", "answer[0], kind[mine][answer[1]]"),
        ("said, order", "answer[0][answer[1].argsort()], kind[mine]"),
    ],
    ids=["targets", "answers"],
)
def test_an_order_that_is_handed_out_is_used_outside(
    answer: str, loss: str, tmp_path: Path
) -> None:
    assert not _found(_run(tmp_path, ARGSORT, "ids[order]", answer, loss))


CODES = """
import torch
from torch import nn

class Codes(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes, self.tell = nn.Parameter(torch.randn(24, 6)), nn.Linear(6, 3)

    def forward(self, weights):
        return self.tell(self.codes)

model, kinds = Codes(), torch.randint(0, 3, (24,))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(20):
    loss = nn.functional.cross_entropy(model(torch.rand(24)), kinds)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_answers_that_are_made_of_nothing_that_is_given_have_no_order(tmp_path: Path) -> None:
    assert not _found(died(tmp_path, CODES))


DRAWING = """
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

length = torch.randint(4, 16, (192,))
ids = torch.randint(5, 40, (192, 16)) * (torch.arange(16) < length[:, None])

class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.look, self.read = nn.Embedding(48, 12, padding_idx=0), nn.GRU(12, 16, batch_first=True)
        self.say, self.tell = nn.GRU(12, 16, batch_first=True), nn.Linear(16, 48)

    def forward(self, ids, lengths):
        lengths, order = lengths.sort(descending=True)
        packed = pack_padded_sequence(self.look(ids[order]), lengths, batch_first=True)
        middle = self.read(packed)[1]
        drawn = middle + 0.5 * torch.randn_like(middle)
        said, _ = pad_packed_sequence(self.say(packed, drawn)[0], batch_first=True, total_length=16)
        return self.tell(said[order.argsort()]).log_softmax(-1)

speaker = Speaker()
optimizer = torch.optim.Adam(speaker.parameters(), lr=3e-3)
for mine in torch.randperm(192).split(48):
    answer = speaker(ids[mine], length[mine])
    loss = nn.functional.nll_loss(answer[:, :-1].reshape(-1, 48), ids[mine][:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_what_a_model_draws_by_itself_is_no_other_example(tmp_path: Path) -> None:
    run = died(tmp_path, DRAWING)
    assert any(i.other_examples for d in run.deep for i in d.influence)  # its rows are sorted
    assert not list(mixes(run))

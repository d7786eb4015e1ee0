"""What evaluations answered is counted as the script itself would count it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from processes import Bench

from sawbones.observe.answers import MAX_COUNTED, Answers
from sawbones.observe.scalars import ScalarReader
from sawbones.schema import Evaluated

CLASSIFIER = """
import json, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(200, 6)
y = x[:, :3].argmax(1)
train = DataLoader(TensorDataset(x[:120], y[:120]), 20)
test = DataLoader(TensorDataset(x[120:], y[120:]), 30)
model = nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), 0.5)
for epoch in range(3):
    for a, b in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(a), b).backward()
        optimizer.step()
    table = [[0] * 3 for _ in range(3)]
    with torch.no_grad():
        for a, b in test:
            EVALUATE
    print(json.dumps(table))
"""
BY_HAND = """for t, g in zip(b.tolist(), model(a).argmax(1).tolist()): table[t][g] += 1"""
BY_LOSS = """scores = model(a); nn.functional.cross_entropy(scores, b)
            for t, g in zip(b.tolist(), scores.argmax(1).tolist()): table[t][g] += 1"""


@pytest.mark.parametrize("evaluate", [BY_HAND, BY_LOSS], ids=["by hand", "by a loss"])
def test_the_table_is_the_one_that_the_script_makes(bench: Bench, evaluate: str) -> None:
    done = bench.watched(CLASSIFIER.replace("EVALUATE", evaluate))
    assert done.status == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    found = done.run.evaluated
    assert [one.step for one in found] == [6, 12, 18]
    for one, table in zip(found, told, strict=True):
        assert list(one.asked) == [sum(row) for row in table]
        assert list(one.right) == [table[i][i] for i in range(3)]
    assert [list(row) for row in found[-1].matrix] == told[-1]
    assert not any(one.matrix for one in found[:-1]), "the latest one alone keeps its table"


class Kept:
    def __init__(self) -> None:
        self.found: dict[int, Evaluated] = {}
        self.answers = Answers(self._write, ScalarReader())

    def _write(self, kind: str, number: int, value: Any) -> None:
        assert kind == "evaluated"
        self.found[number] = value


def test_what_is_no_class_is_left_out_and_two_loaders_are_two_evaluations() -> None:
    kept = Kept()
    scores = torch.eye(3)[torch.tensor([0, 1, 2, 2])]
    kept.answers.graded("cross_entropy", scores, torch.tensor([0, 1, -100, 1]), 5, "loader:1")
    kept.answers.graded("cross_entropy", scores[:2], torch.tensor([2, 2]), 5, "loader:2")
    assert set(kept.found) == {0}, "the first is over once the second begins"
    kept.answers.settle()
    assert kept.found[0].asked == (1, 2, 0) and kept.found[0].right == (1, 1, 0)
    assert kept.found[1].matrix == ((0, 0, 0), (0, 0, 0), (1, 1, 0))


def test_yes_and_no_is_two_classes_and_many_pixels_are_counted_in_part() -> None:
    kept = Kept()
    logits, truth = torch.tensor([[2.0], [-1.0], [3.0]]), torch.tensor([[1.0], [1.0], [0.0]])
    kept.answers.graded("binary_cross_entropy_with_logits", logits, truth, 1, "")
    kept.answers.settle()
    assert kept.found[0].matrix == ((0, 1), (1, 1))
    pixels = torch.zeros(2, 4, 256, 256)
    pixels[:, 3] = 1.0
    labels = torch.full((2, 256, 256), 3)
    kept.answers.graded("cross_entropy", pixels, labels, 2, "")
    kept.answers.settle()
    assert kept.found[1].skipped == 2 and sum(kept.found[1].asked) == MAX_COUNTED
    assert kept.found[1].accuracy == 1.0


def test_counts_are_exact_under_autocast() -> None:
    kept = Kept()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = torch.zeros(1003, 2)
        kept.answers.graded("cross_entropy", scores, torch.zeros(1003, dtype=torch.long), 0, "")
    kept.answers.settle()
    assert kept.found[0].asked == (1003, 0)


@pytest.mark.parametrize(
    ("scores", "labels"),
    [
        (torch.zeros(4, 100), torch.zeros(4, dtype=torch.long)),  # a vocabulary
        (torch.zeros(4, 3), torch.zeros(4, 3)),  # probabilities
        (torch.zeros(4), torch.zeros(4)),  # numbers
    ],
)
def test_what_is_no_classifier_is_not_counted(scores: torch.Tensor, labels: torch.Tensor) -> None:
    kept = Kept()
    kept.answers.graded("cross_entropy", scores, labels, 0, "")
    kept.answers.answered(scores, (labels,), 0, "")
    kept.answers.settle()
    assert not kept.found

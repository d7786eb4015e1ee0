"""A loader that is read one batch ahead of the loop, as Accelerate does: each model call belongs to
the batch that it was given, not to the latest one that was fetched.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from sawbones.observe.options import diagnosing
from sawbones.trials.bench import Bench, Patient

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(900, 6)
y = (x @ torch.randn(6, 3)).argmax(1)


def batches(first, last, size):
    ahead = None
    for batch in DataLoader(TensorDataset(x[first:last], y[first:last]), batch_size=size):
        if ahead is not None:
            yield ahead
        ahead = batch
    yield ahead


net = nn.Linear(6, 3)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
for epoch in range(2):
    for rows, labels in batches(0, 600, 30):
        loss = nn.functional.cross_entropy(net({inputs}), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def evaluate(first, last, size):
    right = 0
    with torch.no_grad():
        for rows, labels in batches(first, last, size):
            right += (net({inputs}).argmax(1) == labels).sum().item()
    return right / (last - first)


print(evaluate(600, 750, 150), evaluate(750, 900, 30))
"""


@pytest.mark.parametrize("inputs", ["rows", "rows * 1.0"])
def test_answers_are_held_against_the_labels_of_their_own_batch(
    tmp_path: Path, inputs: str
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.replace("{inputs}", inputs))
    with Bench(Patient("train.py", (), tmp_path), 120) as bench:
        run = bench.execute(diagnosing())
        printed = [float(word) for word in bench.log_tail.split()[-2:]]
    assert Counter(batch.phase for batch in run.batches) == {"train": 40, "eval": 6}
    assert run.populations is not None
    assert [one.score for one in run.populations.passes] == pytest.approx(printed)

"""Answers that leave torch batch by batch, and are scored by scikit-learn: each batch, or all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died

from sawbones.faults.evaluation.metric_averaging.check import check

pytest.importorskip("sklearn")

SCRIPT = """
import numpy as np
import torch
from sklearn.metrics import accuracy_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(260, 6)
y = (x[:, 0] > 0).long()
train = DataLoader(TensorDataset(x[:160], y[:160]), batch_size=16, shuffle=True)
valid = DataLoader(TensorDataset(x[160:], y[160:]), batch_size=32)
model = nn.Linear(6, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for rows, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(rows), labels).backward()
        optimizer.step()
    scores, told, right = [], [], []
    with torch.no_grad():
        for rows, labels in valid:
            {collect}
    print(epoch, round(float({score}), 4))
"""
EACH = (
    "scores.append(accuracy_score(labels.numpy(), model(rows).argmax(1).numpy()))",
    "np.mean(scores)",
)
JOINED = (
    "told.append(model(rows).argmax(1).numpy()); right.append(labels.numpy())",
    "accuracy_score(np.concatenate(right), np.concatenate(told))",
)
LISTS = (
    "told += model(rows).argmax(1).tolist(); right += labels.tolist()",
    "accuracy_score(right, told)",
)


@pytest.mark.parametrize(
    ("collect", "score", "said"),
    [(*EACH, ["suspected"]), (*JOINED, []), (*LISTS, [])],
    ids=["each", "joined", "lists"],
)
def test_only_scores_of_single_batches_are_suspected(
    collect: str, score: str, said: list[str], tmp_path: Path
) -> None:
    run = died(tmp_path, SCRIPT.replace("{collect}", collect).replace("{score}", score))
    assert [found.status for found in check(run)] == said

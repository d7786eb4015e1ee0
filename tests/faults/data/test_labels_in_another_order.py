"""Labels beside the wrong inputs are told from labels that are noise by an order that fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from sawbones.diagnosis import diagnose_script
from sawbones.schema import Finding

FAULT = "data.labels-misaligned"
TRAINING = """
loader = DataLoader(TensorDataset(x[:600], y[:600]), batch_size=30, shuffle=True)
net = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(4):
    for rows, labels in loader:
        loss = nn.functional.cross_entropy(net(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
DATA = """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(720, 8)
y = (x @ torch.randn(8, 3)).argmax(1)
"""
APART = "x = x[torch.randperm(720)]\ny = y[torch.randperm(720)]\n"
SCALED_LATER = "x = x[torch.randperm(720)]\nx = (x - x.mean(0)) / x.std(0)\n"
AS_TEXTS = """
names = [f"row{i}.npy" for i in range(720)]
x = torch.stack([x[int(name[3:-4])] for name in sorted(names)])
"""
NOISE = "y = torch.randint(0, 3, (720,))\n"
ANOTHER_LABEL = "other = y\ny = torch.randint(0, 3, (720,))\n"


def _found(folder: Path, change: str, **settings: bool) -> Finding | None:
    (folder / "train.py").write_text(DATA + change + TRAINING)
    found = diagnose_script(
        "train.py", working_folder=folder, seconds=120, only=FAULT, **settings
    ).report.findings
    return found[0] if found else None


@pytest.mark.parametrize(("change", "line"), [(APART, 10), (SCALED_LATER, 9), (AS_TEXTS, 11)])
def test_an_order_in_which_the_same_rows_tell_their_labels_names_it(
    tmp_path: Path, change: str, line: int
) -> None:
    found = _found(tmp_path, change, experiments=False)
    assert found is not None and found.status == "likely"
    assert any("do predict their labels" in e.text for e in found.evidence)
    assert found.where[0].line == line


@pytest.mark.parametrize("change", [NOISE, ANOTHER_LABEL], ids=["noise", "another label"])
def test_labels_that_are_noise_stay_a_suspicion_although_a_batch_can_be_memorised(
    tmp_path: Path, change: str
) -> None:
    found = _found(tmp_path, change, experiments=True)
    assert found is None or found.status == "suspected"

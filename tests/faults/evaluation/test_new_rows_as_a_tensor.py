"""A look at some training rows beside an evaluation of others is no wrong split."""

from __future__ import annotations

from pathlib import Path

import pytest

from sawbones.diagnosis import diagnose_script

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, Subset

torch.manual_seed(0)
x = torch.randn(500, 6)
y = (x[:, 0] + 0.5 * torch.randn(500) > 0).long()
train = TensorDataset(x[:400], y[:400])
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), 1e-2)
probe = DataLoader(Subset(train, range(100)), batch_size=50)
for epoch in range(4):
    net.train()
    for xb, yb in DataLoader(train, batch_size=32, shuffle=True):
        opt.zero_grad()
        nn.functional.cross_entropy(net(xb), yb).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        hits = sum((net(xb).argmax(1) == yb).sum().item() for xb, yb in probe)
        print("train", hits / 100)
EVALUATED
"""
TENSOR = """
with torch.no_grad():
    print("test", (net(x[400:]).argmax(1) == y[400:]).float().mean().item())
"""


@pytest.mark.parametrize(("evaluated", "found"), [(TENSOR, False), ("", True)])
def test_only_a_run_that_meets_no_new_row_is_validated_on_what_it_trains_on(
    evaluated: str, found: bool, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.replace("EVALUATED", evaluated), encoding="utf-8")
    report = diagnose_script(
        "train.py",
        working_folder=tmp_path,
        seconds=100,
        only="evaluation.wrong-split",
        experiments=False,
    ).report
    assert bool(report.findings) is found

"""Units are called dead only after they were seen on enough rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from sawbones.diagnosis import diagnose_script

SCRIPT = """
import torch
from torch import nn

torch.manual_seed(0)
first, drop, last = nn.Linear(4, 128), nn.Dropout(0.6), nn.Linear(128, 2)
BIAS
net = nn.Sequential(first, drop, nn.ReLU(), last)
opt = torch.optim.Adam(net.parameters(), 1e-3)
for step in range(60):
    x = torch.randn(ROWS, 4)
    loss = nn.functional.cross_entropy(net(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("rows", "bias", "found"),
    [("1", "", False), ("64", "", False), ("64", "first.bias.data.fill_(-20.0)", True)],
    ids=["one row and dropout", "many rows", "many rows and a bias that keeps all units silent"],
)
def test_a_single_row_does_not_make_units_dead(
    rows: str, bias: str, found: bool, tmp_path: Path
) -> None:
    script = SCRIPT.replace("ROWS", rows).replace("BIAS", bias)
    (tmp_path / "train.py").write_text(script, encoding="utf-8")
    report = diagnose_script(
        "train.py",
        working_folder=tmp_path,
        seconds=100,
        only="model.dead-units",
        experiments=False,
    ).report
    assert bool(report.findings) is found

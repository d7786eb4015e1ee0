"""A cut at zero is one of probabilities only where the scores of samples are cut, to be predictions."""

from __future__ import annotations

from pathlib import Path

import pytest

from sawbones.diagnosis import diagnose_script

FAULT = "evaluation.metric-threshold"
PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(360, 5)
y = (x[:, 0] + 0.5 * torch.randn(360) > 0).float()
net = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
def area(p, y):
    order = torch.argsort(p, descending=True); p = p[order]; hits = torch.cumsum(y[order], 0); \
        hits = torch.cat([p[:1] * 0, hits]); empty = bool(hits[-1] <= 0); return hits / hits[-1]
for epoch in range(6):
    for i in range(0, 240, 24):
        loss = nn.functional.binary_cross_entropy_with_logits(net(x[i:i+24]).squeeze(1), y[i:i+24])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        p = torch.sigmoid(net(x[240:]).squeeze(1))
        {what}
"""


def _statuses(folder: Path, what: str) -> list[str]:
    (folder / "train.py").write_text(PROGRAM.replace("{what}", what))
    report = diagnose_script(
        "train.py", working_folder=folder, seconds=120, only=FAULT, experiments=False
    ).report
    return [f.status for f in report.findings]


@pytest.mark.parametrize(
    "what",
    [
        "print(((p > 0.5) == y.narrow(0, 240, 120).bool()).float().mean(), area(p, y[240:])[9])",
        "assert torch.all((p >= 0) * (p <= 1)), p",
        "assert not ((p < 0) | (p > 1)).any(), p",
        "assert (p >= 0).all(), p",
    ],
    ids=["a curve", "between", "not outside", "none below"],
)
def test_a_count_of_a_curve_and_a_question_about_the_range_are_no_cut(
    tmp_path: Path, what: str
) -> None:
    assert _statuses(tmp_path, what) == []


def test_probabilities_that_are_cut_at_zero_to_be_predictions_are_named(tmp_path: Path) -> None:
    what = "print(((p > 0) == y.narrow(0, 240, 120).bool()).float().mean())"
    assert _statuses(tmp_path, what) == ["proven"]

"""Distances that a softmax takes for scores, with and without their minus sign."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died

from sawbones.diagnosis import diagnose_script
from sawbones.faults.loss.wrong_sign.check import check

SCRIPT = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4))
centres = nn.Parameter(torch.randn(5, 4))
means = 2 * torch.randn(5, 6)
optimizer = torch.optim.Adam([*net.parameters(), centres], lr=1e-2)
for step in range(60):
    kinds = torch.arange(50) % 5
    rows = net(means[kinds] + torch.randn(50, 6))
    scores = {scores}
    loss = nn.functional.cross_entropy(scores, kinds)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
NEAREST = (
    "(rows[:, None] - torch.stack([rows[kinds == k].mean(0) for k in range(5)])).pow(2).sum(2)"
)
SQUARED = "((rows.unsqueeze(1) - centres) ** 2).sum(2)"


@pytest.mark.parametrize(
    ("scores", "found"),
    [
        ("torch.cdist(rows, centres)", 1),
        (f"{SQUARED} / 0.5", 1),
        ("(rows.unsqueeze(1) - centres).norm(dim=2)", 1),
        (f"-{SQUARED}", 0),
        ("-torch.cdist(rows, centres) / 0.5", 0),
        ("rows @ centres.T", 0),
        ("(rows @ centres.T).square()", 0),
    ],
)
def test_only_distances_without_a_minus_are_suspected(
    scores: str, found: int, tmp_path: Path
) -> None:
    run = died(tmp_path, SCRIPT.format(scores=scores))
    assert [f.status for f in check(run)] == ["suspected"] * found


@pytest.mark.parametrize(("scores", "found"), [(NEAREST, ["proven"]), (SQUARED, [])])
def test_turning_the_scores_round_decides(scores: str, found: list[str], tmp_path: Path) -> None:
    """Centres that are learned can be the farthest of all for their own rows; means of these rows
    cannot.
    """
    (tmp_path / "train.py").write_text(SCRIPT.format(scores=scores), encoding="utf-8")
    report = diagnose_script(
        "train.py", working_folder=tmp_path, seconds=120, only="loss.wrong-sign"
    ).report
    assert [f.status for f in report.findings] == found

"""A table of classes that is made anew from rows in which one class does not occur."""

from __future__ import annotations

from pathlib import Path

import pytest

from sawbones.diagnosis import diagnose_script

SCRIPT = """
import torch
from torch import nn

torch.manual_seed(0)
centres = 3 * torch.randn(5, 6)
kinds = ["ash", "elm", "fir", "oak", "yew"]


def grown(number, among):
    which = torch.randint(0, len(among), (number,))
    trees = [among[i] for i in which]
    return centres[[kinds.index(t) for t in trees]] + torch.randn(number, 6), trees


def coded(trees, names=None):
    names = names or sorted(set(trees))
    return torch.tensor([names.index(t) for t in trees])


def hits(x, y):
    net.eval()
    with torch.no_grad():
        found = sum((net(a).argmax(1) == b).sum().item() for a, b in zip(x.split(60), y.split(60)))
    return found / len(y)


net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 5))
opt = torch.optim.Adam(net.parameters(), 1e-2)
x, trees = grown(600, kinds)
y = coded(trees)
near, near_trees = grown(240, kinds)
far, far_trees = grown(240, [k for k in kinds if k != "elm"])
for epoch in range(5):
    net.train()
    for part in torch.randperm(600).split(50):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x[part]), y[part]).backward()
        opt.step()
    print(hits(near, coded(near_trees, kinds)))
print(hits(far, coded(far_trees, {names})))
"""


@pytest.mark.parametrize(("names", "ill"), [("None", True), ("kinds", False)])
def test_classes_that_are_numbered_anew_are_named(tmp_path: Path, names: str, ill: bool) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.replace("{names}", names), encoding="utf-8")
    report = diagnose_script(
        "train.py",
        working_folder=tmp_path,
        seconds=100,
        only="evaluation.metric-threshold",
        experiments=False,
    ).report
    assert [f.status for f in report.findings] == ["likely"] * ill
    if ill:
        assert report.findings[0].where[0].code == "print(hits(far, coded(far_trees, None)))"
        assert "4 stands for 3" in report.findings[0].evidence[0].text

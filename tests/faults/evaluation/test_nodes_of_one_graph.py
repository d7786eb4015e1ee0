"""Where every call is given one graph, what is trained on and what is scored is picked behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sawbones.diagnosis import diagnose_script

SCRIPT = """
import torch
from torch import nn

torch.manual_seed(0)
people, friends = torch.randn(300, 8), (torch.rand(300, 300) < 0.02).float()
friends = (friends + friends.T + torch.eye(300)).clamp(max=1)
votes = (people[:, 0] + 0.5 * torch.randn(300) > 0).long()
order = torch.randperm(300)
asked, others = {asked}, {others}

class Neighbours(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(8, 16), nn.Linear(16, 2)

    def forward(self, x):
        share = friends / friends.sum(1, keepdim=True)
        return self.outer(share @ torch.relu(self.inner(x)))

net = Neighbours()
opt = torch.optim.Adam(net.parameters(), 1e-2)
for epoch in range(12):
    opt.zero_grad()
    nn.functional.cross_entropy(net(people)[asked], votes[asked]).backward()
    opt.step()
    with torch.no_grad():
        print((net(people)[others].argmax(1) == votes[others]).float().mean().item())
"""


@pytest.mark.parametrize(
    ("asked", "others", "found"),
    [("order[:120]", "order[120:]", False), ("slice(None)", "slice(None)", True)],
    ids=["picked", "all"],
)
def test_nodes_that_are_given_count_as_trained_on_only_where_all_are_asked_for(
    asked: str, others: str, found: bool, tmp_path: Path
) -> None:
    script = SCRIPT.replace("{asked}", asked).replace("{others}", others)
    (tmp_path / "train.py").write_text(script, encoding="utf-8")
    report = diagnose_script(
        "train.py",
        working_folder=tmp_path,
        seconds=100,
        only="evaluation.wrong-split",
        experiments=False,
    ).report
    assert bool(report.findings) is found

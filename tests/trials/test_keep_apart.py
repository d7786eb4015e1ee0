"""A score with relatives of evaluated rows in training, and without them, on running scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from sawbones.diagnosis import diagnose_script

# Eight songs of each bird; how a bird sounds says nothing of its species but for those it knows.
SCRIPT = """
import torch
from torch import nn

torch.manual_seed(0)

class Songs:
    def __init__(self, birds=100, each=8):
        self.bird = torch.arange(birds).repeat_interleave(each)
        self.species = torch.randint(0, 2, (birds,))[self.bird]
        voices = torch.randn(birds, 12)
        self.sound = voices[self.bird] + 0.3 * torch.randn(birds * each, 12)
        self.sound[:, 0] += self.species

songs = Songs()
order = {order}
train, chosen_by, held = order[:560], order[560:680], order[680:]
net = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 2))
opt = torch.optim.Adam(net.parameters(), 5e-3)
for epoch in range(40):
    for rows in train[torch.randperm(len(train))].split(60):
        opt.zero_grad()
        nn.functional.cross_entropy(net(songs.sound[rows]), songs.species[rows]).backward()
        opt.step()

def score(rows):
    with torch.no_grad():
        return (net(songs.sound[rows]).argmax(1) == songs.species[rows]).float().mean().item()

print(score(chosen_by), score(held))
"""


@pytest.mark.timeout(600)
def test_a_score_owed_to_known_groups_falls_without_them(tmp_path: Path) -> None:
    """The one over the very same rows: two parts of one size are evaluated at one line."""
    (tmp_path / "train.py").write_text(
        SCRIPT.replace("{order}", "torch.randperm(800)"), encoding="utf-8"
    )
    found = diagnose_script(
        "train.py", working_folder=tmp_path, only="evaluation.leak-group", seconds=300
    )
    (told,) = found.run.strangers
    assert (told.outcome, told.metric) == ("fell", "classes"), told
    assert min(told.claimed, told.control) > told.honest + 0.2
    (finding,) = found.report.findings
    assert any("randperm(800)" in s.code for s in finding.where)


@pytest.mark.timeout(600)
def test_whole_groups_that_are_held_out_are_not_tried(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        SCRIPT.replace("{order}", "torch.arange(800)"), encoding="utf-8"
    )
    found = diagnose_script(
        "train.py", working_folder=tmp_path, only="evaluation.leak-group", seconds=300
    )
    assert not found.run.strangers
    assert not found.report.findings

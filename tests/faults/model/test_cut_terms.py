"""A term of the loss that is cut off from what its step updates, among terms that are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died

from sawbones.faults.model.detached_graph.check import check
from sawbones.schema import Finding

RIVALS = """
import torch
from torch import nn
import torch.nn.functional as F

clean = torch.sin(torch.linspace(0, 6, 16) * (1 + torch.rand(256, 1)))
noisy = clean + 0.3 * torch.randn(256, 16)
maker = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 16))
judge = nn.Sequential(nn.Linear(16, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))
first = torch.optim.Adam(maker.parameters(), lr=1e-3)
second = torch.optim.Adam(judge.parameters(), lr=1e-3)
for x, y in zip(noisy.split(16) * 3, clean.split(16) * 3):
    made = maker(x)
    told, fake = judge(y), judge(made.detach())
    judged = F.softplus(-told).mean() + F.softplus(fake).mean()
    {step}
"""
APART = """
    second.zero_grad(); judged.backward(); second.step()
    loss = F.l1_loss(made, y) + 0.1 * F.softplus(-judge({given})).mean()
    first.zero_grad(); loss.backward(); first.step()
"""
TOGETHER = """
    loss = F.l1_loss(made, y) + judged
    first.zero_grad(); second.zero_grad(); loss.backward(); first.step(); second.step()
"""

PUPIL = """
import torch
from torch import nn
import torch.nn.functional as F

x = torch.randn(256, 12)
y = (x[:, :3].sum(1) > 0).long()
teacher = nn.Linear(12, 2)
body, head, probe = nn.Sequential(nn.Linear(12, 24), nn.ReLU()), nn.Linear(24, 2), nn.Linear(24, 2)
optimizer = torch.optim.Adam([*body.parameters(), *head.parameters(), *probe.parameters()], lr=1e-3)
for rows, labels in zip(x.split(16) * 3, y.split(16) * 3):
    seen = body(rows)
    scores = head(seen)
    loss = F.cross_entropy(scores, labels)
    {term}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
TAUGHT = """
    with torch.no_grad():
        wanted = teacher(rows).softmax(1)
    {inside}
    loss = loss + 0.5 * term
"""


def _found(script: str, folder: Path) -> list[Finding]:
    return [one for one in check(died(folder, script)) if "term of the loss" in one.title]


def _rivals(step: str) -> str:
    return RIVALS.replace("    {step}", step.strip("\n"))


def _pupil(term: str) -> str:
    return PUPIL.replace("    {term}", term.strip("\n"))


LATER = "made if first.state else made.detach()"


@pytest.mark.parametrize(
    ("given", "line"),
    [("made.detach()", 17), ("made", 0), (LATER, 0)],
    ids=["cut", "whole", "later"],
)
def test_a_maker_that_is_judged_by_what_was_cut_off_from_it(
    given: str, line: int, tmp_path: Path
) -> None:
    found = _found(_rivals(APART.replace("{given}", given)), tmp_path)
    assert [one.where[0].line for one in found] == [line] * bool(line)


def test_two_that_share_a_backward_pass_are_both_trained(tmp_path: Path) -> None:
    assert not _found(_rivals(TOGETHER), tmp_path)


BY_HAND = "term = F.kl_div(scores.log_softmax(1), wanted, reduction='batchmean')"


@pytest.mark.parametrize(
    ("term", "silent"),
    [
        (TAUGHT.replace("{inside}", "with torch.no_grad():\n        " + BY_HAND), False),
        (TAUGHT.replace("{inside}", BY_HAND.replace("scores", "scores.detach()")), False),
        ("    loss = loss + 1e-3 * sum(p.data.square().sum() for p in head.parameters())", False),
        (TAUGHT.replace("{inside}", BY_HAND), True),
        (TAUGHT.replace("{inside}", BY_HAND).replace("* term", "* term.detach()"), True),
        ("    loss = loss + F.cross_entropy(probe(seen.detach()), labels)", True),
        ("    loss = loss + 1e-3 * sum(p.square().sum() for p in head.parameters())", True),
        ("    loss = loss * (1 - scores.detach().softmax(1).amax()) + 0.1 * loss", True),
    ],
    ids=["no_grad", "detach", "data", "taught", "shown", "probe", "penalty", "weight"],
)
def test_a_term_without_gradients(term: str, silent: bool, tmp_path: Path) -> None:
    assert bool(_found(_pupil(term), tmp_path)) != silent

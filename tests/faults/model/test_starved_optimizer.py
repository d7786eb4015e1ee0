"""Two models that take turns: one whose own step cuts it off, and one where only the other does."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died

from sawbones.faults.model.detached_graph.check import check
from sawbones.faults.optimizer.stale_params.check import check as stale

TURNS = """
import torch
from torch import nn

torch.manual_seed(0)
maker, judge = nn.Linear(3, 2), nn.Linear(2, 1)
first = torch.optim.Adam(maker.parameters(), lr=1e-3)
second = torch.optim.Adam(judge.parameters(), lr=1e-3)
loss_of = nn.BCEWithLogitsLoss()
for _ in range(8):
    made = maker(torch.randn(16, 3))
    loss = loss_of(judge(torch.randn(16, 2)), torch.ones(16, 1))
    loss = loss + loss_of(judge(made.detach()), torch.zeros(16, 1))
    second.zero_grad()
    loss.backward()
    second.step()
    wanted = loss_of(judge(made{cut}), torch.ones(16, 1))
    first.zero_grad()
    wanted.backward()
    first.step()
"""


def test_a_model_that_its_own_step_cuts_off_is_proven_at_the_cut(tmp_path: Path) -> None:
    run = died(tmp_path, TURNS.format(cut=".detach()"))
    (found,) = check(run)
    line = TURNS.split("\n").index("    wanted = loss_of(judge(made{cut}), torch.ones(16, 1))") + 1
    assert found.status == "proven" and found.where[0].line == line


@pytest.mark.parametrize("cut", ["", ".clone()"])
def test_a_model_that_only_the_others_step_cuts_off_is_silent(cut: str, tmp_path: Path) -> None:
    assert not list(check(died(tmp_path, TURNS.format(cut=cut))))


BARE = """
import torch
from torch.nn.functional import softplus

torch.manual_seed(0)
maker, judge = torch.randn(3, 2, requires_grad=True), torch.randn(2, 1, requires_grad=True)
first, second = torch.optim.Adam([maker], lr=1e-3), torch.optim.Adam([judge], lr=1e-3)
for _ in range(8):
    made = torch.randn(16, 3) @ maker
    real = torch.randn(16, 2)
    loss = softplus(-real @ judge).mean() + softplus(made.detach() @ judge).mean()
    second.zero_grad()
    loss.backward()
    second.step()
    wanted = softplus(-made{cut} @ judge).mean()
    first.zero_grad(set_to_none={none})
    wanted.backward()
    first.step()
"""


@pytest.mark.parametrize("none", [True, False])
def test_bare_tensors_and_a_loss_that_is_not_recognised_are_seen_as_well(
    none: bool, tmp_path: Path
) -> None:
    (found,) = check(died(tmp_path, BARE.format(cut=".detach()", none=none)))
    assert found.status == "proven" and "made.detach()" in found.where[0].code
    assert "wanted" in found.where[0].code


def test_bare_tensors_that_only_the_others_step_cuts_off_are_silent(tmp_path: Path) -> None:
    assert not list(check(died(tmp_path, BARE.format(cut="", none=True))))


REPLACED = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for layer in (net[0], net[2]):
    layer.weight = nn.Parameter(torch.randn_like(layer.weight) / 3)
    layer.bias = nn.Parameter(torch.zeros_like(layer.bias))
seen = []
for _ in range(20):
    rows = torch.randn(16, 4)
    loss = (net(rows)[:, 0] - rows.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    seen.append(loss.detach().numpy())
"""


def test_tensors_that_left_the_model_are_not_cut_off_from_it(tmp_path: Path) -> None:
    run = died(tmp_path, REPLACED)
    assert not list(check(run))
    assert [f.status for f in stale(run)] == ["proven"]

"""Several losses of one model: the last one overwrites the others, or all are added up."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died

from sawbones.faults.model.detached_graph.check import check

TASKS = """
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
trunk = nn.Linear(4, 8)
heads = nn.ModuleList([nn.Linear(8, 1), nn.Linear(8, 1)])
model = nn.ModuleList([trunk, heads])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x, targets = torch.randn(16, 4), [torch.randn(16, 1), torch.randn(16, 1)]
for _ in range(8):
    h = torch.relu(trunk(x))
    total = x.new_zeros(())
    for head, target in zip(heads, targets):
        loss = F.mse_loss(head(h), target)
        total = {joined}
    logged = F.l1_loss(heads[1](h), targets[1])
    optimizer.zero_grad()
    {backward}
    optimizer.step()
"""


def test_a_loss_that_the_next_one_overwrites_is_named_where_they_should_be_joined(
    tmp_path: Path,
) -> None:
    script = TASKS.format(joined="0.5 * loss", backward="total.backward()")
    (found,) = check(died(tmp_path, script))
    assert found.status == "likely" and "total = 0.5 * loss" in found.where[0].code


@pytest.mark.parametrize(
    ("joined", "backward"),
    [
        ("total + 0.5 * loss", "total.backward()"),
        ("total + 0 * loss", "total.backward()"),
        (
            "total + loss",
            "[F.mse_loss(heads[i](h), t).backward(retain_graph=True) "
            "for i, t in enumerate(targets)]",
        ),
    ],
)
def test_losses_that_are_added_up_or_go_backward_one_by_one_are_silent(
    joined: str, backward: str, tmp_path: Path
) -> None:
    assert not list(check(died(tmp_path, TASKS.format(joined=joined, backward=backward))))

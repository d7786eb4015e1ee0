"""The slope of a root at zero: an epsilon under it helps, one behind it does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died

from sawbones import faults

SCRIPT = """
import torch
from torch import nn

class Length(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(6))

    def forward(self, given):
        size = {size}
        return self.scale * given / {divisor}

net = nn.Sequential(nn.Linear(4, 6, bias=False), Length(), nn.Linear(6, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(12):
    rows = torch.randn(8, 4)
    if step == {at}:
        rows[3] = 0
    optimizer.zero_grad()
    ((net(rows)[:, 0] - rows.sum(1)) ** 2).mean().backward()
    optimizer.step()
"""


BEHIND = "given.pow(2).sum(-1, keepdim=True).sqrt()"


@pytest.mark.parametrize(
    ("size", "divisor", "at", "found"),
    [
        (BEHIND, "(size + 1e-6)", 2, ["proven"]),
        (BEHIND, "(size + 1e-6)", 7, ["likely"]),
        ("torch.sqrt((given * given).mean(-1, True))", "size.clamp(min=1e-4)", 2, ["proven"]),
        ("(given.pow(2).sum(-1, keepdim=True) + 1e-6).sqrt()", "size", 2, []),
        ("given.norm(dim=-1, keepdim=True)", "(size + 1e-6)", 2, []),
    ],
    ids=[
        "behind the root",
        "between deep steps",
        "clamped behind it",
        "under it",
        "a norm of torch",
    ],
)
def test_only_a_root_of_zero_without_an_epsilon_under_it_is_named(
    size: str, divisor: str, at: int, found: list[str], tmp_path: Path
) -> None:
    run = died(tmp_path, SCRIPT.format(size=size, divisor=divisor, at=at))
    told = faults.read(run, "model.unstable-norm", strict=True).findings
    assert [f.status for f in told] == found
    assert all("size = " in f.where[0].code for f in told)

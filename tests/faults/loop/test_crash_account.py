"""A crash that no check explains is told by its operands; ordinary errors get no claim."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died, explanations

from sawbones.diagnosis.engine import diagnose_run
from sawbones.stats.crash_account import account

HEAD = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 2)
"""
UNKNOWN = HEAD + "square = torch.randn(2, 3)\ntorch.linalg.cholesky(square)\n"
ENDED = (
    HEAD
    + """
loader = torch.utils.data.DataLoader(torch.randn(8, 3), batch_size=4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
batches = iter(loader)
for _ in range(5):
    net(next(batches)).sum().backward()
    optimizer.step()
"""
)
ORDINARY = {
    "a key": "{'a': 1}['b']",
    "a division": "1 / len([])",
    "an index": "[1, 2][5]",
    "an attribute": "'text'.nothing",
    "a type": "'a' + 1",
    "a call": "(lambda a: a)()",
    "an assertion": "assert 1 == 2, 'not equal'",
    "a value of its own": "raise ValueError('index out of range in self')",
    "a tuple": "(1, 2)[0] = 3",
    "a decode": "b'\\xff'.decode()",
}


def test_operands_their_sizes_and_lines_are_told_where_no_check_fits(tmp_path: Path):
    run = died(tmp_path, UNKNOWN)
    assert explanations(run) == []
    first, *given = account(run)
    assert "torch.linalg.cholesky(square)" in first
    assert "square is 2 x 3 of float32" in given[0] and "line 7" in given[0]
    assert first in diagnose_run(run).report.notes


def test_the_end_of_an_iterator_is_named_with_the_line_that_makes_it(tmp_path: Path):
    (found,) = explanations(died(tmp_path, ENDED))
    assert found.fault == "pipeline.empty-loader"
    assert [site.line for site in found.where] == [12, 10]
    assert found.fix is not None and "batches = iter(loader)" in found.fix.summary


@pytest.mark.parametrize("line", ORDINARY.values(), ids=ORDINARY)
def test_an_ordinary_error_is_not_explained_by_shapes_or_indices(tmp_path: Path, line: str):
    found = explanations(died(tmp_path, HEAD + line + "\n"))
    shaped = ("model.", "pipeline.token", "loss.")
    assert not [f.fault for f in found if f.fault.startswith(shaped)]

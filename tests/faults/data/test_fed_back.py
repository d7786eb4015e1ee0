"""Values that are not finite: in the data, and in a state that the model made and is given again."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died

from sawbones.faults.data.nonfinite_input.check import check

SCRIPT = """
import torch
from torch import nn

cell = nn.Linear(3, 3)
optimizer = torch.optim.SGD(cell.parameters(), lr=0.01)
for step in range(8):
    state = start = torch.randn(16, 3)
    {spoiled}
    for _ in range(30):
        state = state + ({gain}) * cell(state)
    loss = (state - start).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("spoiled", "gain", "found"),
    [
        ("", "0.01", 0),
        ("", "0.01 if step < 5 else 1e4", 0),
        ("state[2, 1] = float('nan') if step == 5 else 0", "0.01", 1),
    ],
    ids=["calm", "a state that overflows", "a row that is no number"],
)
def test_only_what_comes_from_outside_is_data(
    spoiled: str, gain: str, found: int, tmp_path: Path
) -> None:
    run = died(tmp_path, SCRIPT.format(spoiled=spoiled, gain=gain))
    assert [f.status for f in check(run)] == ["proven"] * found

"""Gradients that a step adds to are part of what it began with."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.capture.conftest import record

from sawbones.capture.bundle import read_bundle
from sawbones.capture.replay import replay
from sawbones.capture.shrink import shrink

UNCLEARED = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(160, 6)
x[101, 2] = BAD
data = DataLoader(TensorDataset(x, torch.randn(160, 1)), batch_size=4)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for number, (features, wanted) in enumerate(data):
    loss = nn.functional.mse_loss(model(features), wanted)
    (loss / 2).backward()
    if number % 2:
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("bad", "kind", "microstep"), [("float('nan')", "nonfinite loss", 1), ("1e4", "loss spike", 1)]
)
def test_a_failure_in_the_middle_of_an_accumulation_begins_with_the_gradients_so_far(
    tmp_path: Path, bad: str, kind: str, microstep: int
) -> None:
    path = record(tmp_path, UNCLEARED.replace("BAD", bad)).bundles[0]
    bundle = read_bundle(path)
    assert bundle.failure.kind == kind
    state = bundle.unpacked("snapshot")
    assert (state["step"], state["microstep"]) == (bundle.step, microstep)
    assert set(state["gradients"]) == {"weight", "bias"}
    assert [(a["step"], a["microstep"]) for a in bundle.batches()] == [(bundle.step, microstep)]
    found = replay(bundle)
    assert (found.same, found.way, found.tried) == (True, "jump", [])


# The loss is finite, its gradient is not: that is seen when the step has added to what was carried.
IN_THE_GRADIENT = UNCLEARED.replace("BAD", "0.0").replace(
    "    (loss / 2).backward()\n",
    (
        "    if number == 31:\n        loss = loss + (0 * model.weight).sum().sqrt()\n    "
        "(loss / 2).backward()\n"
    ),
)


def test_a_failure_that_is_seen_after_the_accumulation_begins_at_the_last_copy(
    tmp_path: Path,
) -> None:
    (path,) = record(tmp_path, IN_THE_GRADIENT).bundles
    bundle = read_bundle(path)
    assert bundle.failure.kind == "nonfinite gradient"
    state = bundle.unpacked("snapshot")
    assert state["step"] < bundle.step
    assert state["step"] == 0 or set(state["gradients"]) == {"weight", "bias"}
    found = replay(bundle)
    assert (found.same, found.way, found.tried) == (True, "jump", [])


def test_gradients_that_are_cleared_are_not_kept(tmp_path: Path) -> None:
    cleared = UNCLEARED.replace("BAD", "float('nan')") + "        optimizer.zero_grad()\n"
    (path,) = record(tmp_path, cleared).bundles
    bundle = read_bundle(path)
    assert bundle.unpacked("snapshot")["gradients"] is None
    assert [a["microstep"] for a in bundle.batches()] == [0, 1]
    small = shrink(bundle, tmp_path / "small")
    assert read_bundle(small.bundle).unpacked("snapshot")["gradients"] is None

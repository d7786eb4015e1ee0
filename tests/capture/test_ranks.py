"""Ranks that differ, and ranks that wait for each other, are captured like any other failure."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.capture.conftest import record, sawbones

from sawbones.capture.bundle import read_bundle
from sawbones.capture.ranks import drifted, standstill
from sawbones.capture.replay import replay
from sawbones.schema import Site
from sawbones.schema.ranks import Agreement, Apart, Position, TensorApart

# Rank 1 changes a weight by itself at step 12; from then on the steps are slow enough to be
# compared while they last.
DRIFT = """
import time
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

distributed.init_process_group("gloo")
rank = distributed.get_rank()
torch.manual_seed(0)
model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
torch.manual_seed(rank)
for step in range(60):
    if step > 18:
        time.sleep(0.25)
    if step == 12 and rank == 1:
        with torch.no_grad():
            model.module[2].weight.mul_(1.5)
    loss = model(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

HANG = """
import torch
from torch import distributed, nn

distributed.init_process_group("gloo")
rank = distributed.get_rank()
torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(5):
    loss = model(torch.ones(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    if step == 3 and rank == 1:
        distributed.barrier()
    total = loss.detach().clone()
    distributed.all_reduce(total)
    optimizer.step()
distributed.barrier()
"""


@pytest.mark.timeout(400)
def test_drift_is_captured_on_every_rank_and_replays_bit_for_bit(tmp_path: Path) -> None:
    seen = record(tmp_path, DRIFT, "--nproc-per-node", "2")
    bundles = [read_bundle(path) for path in seen.bundles]
    assert [(b.rank, b.failure.kind) for b in sorted(bundles, key=lambda b: b.rank)] == [
        (0, "rank mismatch"),
        (1, "rank mismatch"),
    ]
    for bundle in bundles:
        assert bundle.failure.text.startswith(
            "parameters of ranks 0 and 1 differ after 20 steps, after 10 they were the "
            "same: 2.weight"
        )
        assert bundle.step >= 20
    assert f"sawbones replay {bundles[0].path.parent.relative_to(seen.folder)}" in seen.errors
    found = replay(bundles[1])
    assert (found.same, found.way, found.tried) == (True, "rerun", [])
    refused = sawbones(tmp_path, "pin", str(bundles[0].path))
    assert refused.returncode == 2
    assert "--nproc-per-node 2 train.py" in refused.stderr


@pytest.mark.long
@pytest.mark.timeout(400)
def test_ranks_that_wait_for_each_other_are_captured_and_wait_again(tmp_path: Path) -> None:
    seen = record(tmp_path, HANG, "--nproc-per-node", "2")
    bundles = [read_bundle(path) for path in seen.bundles]
    assert bundles, seen.errors
    bundle = bundles[0]
    assert (bundle.failure.kind, bundle.step) == ("rank mismatch", 3)
    assert bundle.failure.text.startswith(
        "the ranks wait for each other: rank 0 is in all_reduce at train.py:17"
    )
    assert bundle.failure.site is not None
    found = replay(bundle)
    assert (found.same, found.way, found.text) == (True, "rerun", "the ranks wait for each other")


def row(distance: float, first: int, apart: bool = True) -> Apart:
    tensors = TensorApart("a", 1.0, 1.0, distance), TensorApart("b", 1.0, 1.0, distance / 2)
    return Apart(1, 0, first, -1, 1, first, tensors, 2, apart)


def test_the_first_difference_that_is_more_than_rounding_is_told() -> None:
    assert drifted(None) is None
    assert drifted(Agreement()) is None
    rounding = {"parameters": row(1e-7, 3, apart=False), "buffers": row(0.1, 2)}
    assert drifted(Agreement(found=rounding)) is None
    told = drifted(Agreement(found={"parameters": row(0.1, 9), "gradients": row(0.2, 5)}))
    assert told == "gradients of ranks 0 and 1 differ after 5 steps: a is apart by 0.2 of its norm"


def test_a_rank_that_has_ended_is_told() -> None:
    ended = Position(1, True, "")
    waits = Position(0, False, "barrier", Site("a.py", 3, "f", "barrier()"))
    found = standstill({"hang": [ended, waits]}, 0)
    assert found is not None
    assert (
        found[0]
        == "the ranks wait for each other: rank 0 is in barrier at a.py:3, rank 1 has ended"
    )
    assert found[1] is not None and found[1].line == 3
    assert standstill({}, 0) is None

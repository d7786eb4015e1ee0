"""Ranks compare fingerprints while they train: over the store, without a collective, waiting for
nobody.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import distributed

from sawbones.faults import read
from sawbones.observe.rank_channel import KEPT, NOTE_BYTES, Note, RankChannel, Single, unpack_notes
from sawbones.observe.tensor_prints import Pending
from sawbones.store import read_run

# fingerprints


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.complex64, torch.bool],
)
@pytest.mark.parametrize("size", [1, 7, 1024, 5000])
def test_one_changed_value_changes_the_fingerprint(dtype: torch.dtype, size: int) -> None:
    values = torch.randn(size) > 0 if dtype is torch.bool else (10 * torch.randn(size)).to(dtype)
    changed = values.clone()
    changed[size // 2] = ~changed[size // 2] if dtype is torch.bool else changed[size // 2] + 1
    first, again, other = (Pending([t]).read() for t in (values, values.clone(), changed))
    assert first.folded() == again.folded() != other.folded()


def test_the_sketch_tells_how_far_tensors_are_apart() -> None:
    torch.manual_seed(0)
    values = torch.randn(200, 300)
    for noise in (1e-6, 1e-3, 0.1):
        ours, theirs = (
            Pending([values]).read(),
            Pending([values + noise * torch.randn(200, 300)]).read(),
        )
        distance = np.linalg.norm((ours.numbers - theirs.numbers)[0, 1:]) / ours.numbers[0, 0]
        assert noise / 3 < distance < 3 * noise


def test_no_random_number_is_drawn_and_nothing_is_written() -> None:
    values = torch.randn(3000)
    before, state = values.clone(), torch.get_rng_state()
    Pending([values, None, torch.zeros(0)]).read()
    assert torch.equal(values, before) and torch.equal(state, torch.get_rng_state())


# the channel


def left(channel: RankChannel, step: int, parameters: torch.Tensor, layout: int = 1) -> None:
    prints = {"parameters": Pending([torch.ones(3), parameters]).read()}
    note = Note(step, layout, {kind: p.folded() for kind, p in prints.items()})
    channel.leave(note, Single(step, {"parameters": ["bias", "weight"]}, prints))


def soon(true) -> bool:
    until = time.monotonic() + 60
    while not true() and time.monotonic() < until:
        time.sleep(0.02)
    return bool(true())


def test_a_note_has_one_size_whatever_the_model() -> None:
    note = Note(7, -3, {"parameters": -1, "events": 5})
    assert len(note.pack()) == NOTE_BYTES == 72
    (back,) = unpack_notes(note.pack())
    assert back.step == 7 and back.prints == {"parameters": 2**64 - 1, "events": 5}


def test_all_ranks_learn_which_tensor_drifted_and_since_when() -> None:
    store = distributed.HashStore()
    ranks = [RankChannel(lambda: store, r, 3) for r in range(3)]
    values = torch.randn(2000)
    for step in (1, 2, 3):
        for rank, channel in enumerate(ranks):
            left(channel, step, values * 1.01 if rank == 2 and step == 3 else values)
    assert soon(lambda: all("parameters" in channel.found for channel in ranks))
    row = ranks[0].found["parameters"]
    assert (row["other"], row["rank"], row["first"], row["same"], row["num"]) == (1, 2, 3, 2, 1)
    assert (
        [t["name"] for t in row["tensors"]] == ["weight"]
        and row["tensors"][0]["distance"] > 1e-3
        and row["drifted"]
    )
    for channel in ranks:
        channel.close()
    assert ranks[1].comparison.compared == 3 and not ranks[1].comparison.apart


def test_rounding_is_not_drift_and_is_looked_at_again() -> None:
    store = distributed.HashStore()
    ranks = [RankChannel(lambda: store, r, 2) for r in range(2)]
    values = torch.randn(2000)
    for step, factor in ((1, 1 + 1e-6), (2, 1.1)):
        for rank, channel in enumerate(ranks):
            left(channel, step, values * factor if rank else values)
        assert soon(lambda step=step: ranks[0].found.get("parameters", {}).get("step") == step)
        assert ranks[0].found["parameters"]["drifted"] is (step == 2)
    assert ranks[0].found["parameters"]["first"] == 1
    for channel in ranks:
        channel.close()


def test_different_models_are_not_compared() -> None:
    store = distributed.HashStore()
    ranks = [RankChannel(lambda: store, r, 2) for r in range(2)]
    for rank, channel in enumerate(ranks):
        left(channel, 1, torch.randn(100 + rank), layout=rank)
        channel.close()
    assert not ranks[1].found and ranks[1].comparison.compared == 0


class Stuck:
    """A store whose machine is gone."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error

    def set(self, key: str, value: bytes) -> None:
        if self.error is not None:
            raise self.error
        time.sleep(5)

    check = get = set


@pytest.mark.parametrize("error", [None, ConnectionError("gone")])
def test_a_store_that_is_gone_holds_nobody_up(error: Exception | None) -> None:
    channel = RankChannel(lambda: Stuck(error), 1, 2)
    began = time.monotonic()
    for step in range(1, 2 * KEPT):
        left(channel, step, torch.ones(10))
    assert time.monotonic() - began < 0.5
    channel.close()
    assert time.monotonic() - began < 4
    assert ("gone" in channel.error) is (error is not None)


def test_a_rank_that_ends_early_is_not_waited_for() -> None:
    store = distributed.HashStore()
    late = RankChannel(lambda: store, 1, 2)
    left(late, 1, torch.ones(10))
    began = time.monotonic()
    late.close()
    assert time.monotonic() - began < 3 and not late.error


# real processes

DRIFT = """
import time
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
net = DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
torch.manual_seed(rank + 1)
for step in range(STEPS):
    x = torch.randn(16, 8)
    optimizer.zero_grad()
    (net(x) - x[:, :4]).square().mean().backward()
    optimizer.step()
    if step >= DRIFTS - 1:
        time.sleep(0.02)
    if step == DRIFTS and rank == dist.get_world_size() - 1:
        with torch.no_grad():
            net.module[2].weight.mul_(1.01)
if rank == 0:
    print("weights", [float(p.detach().double().sum()).hex() for p in net.parameters()], flush=True)
    print("training is over", flush=True)
dist.destroy_process_group()
"""
UNEVEN = """
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(6 + 60 * rank):
    optimizer.zero_grad()
    net(torch.ones(8, 4)).square().mean().backward()
    if step == 3 and rank == CRASHES:
        raise ValueError("bad batch")
    optimizer.step()
print(f"rank {rank} ends with {net.weight.sum().item():.9f}", flush=True)
"""


def ranks_run(
    folder: Path, source: str, ranks: int, watched: bool = True, **values: int
) -> subprocess.CompletedProcess[str]:
    for name, value in values.items():
        source = re.sub(rf"\b{name}\b", str(value), source)
    (folder / "train.py").write_text(source, encoding="utf-8")
    bare = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(ranks),
        "train.py",
    ]
    own = [
        sys.executable,
        "-m",
        "sawbones",
        "run",
        "--no-deep",
        "--out",
        "run",
        "--nproc-per-node",
        str(ranks),
        "train.py",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = own if watched else bare
    return subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        env=environment,
    )


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("ranks", [4])
def test_drift_is_told_while_training_goes_on_and_from_any_folder(
    tmp_path: Path, ranks: int
) -> None:
    done = ranks_run(tmp_path, DRIFT, ranks, STEPS=420, DRIFTS=120)
    assert done.returncode == 0, done.stdout
    said, over = done.stdout.find("loop.rank-desync"), done.stdout.find("training is over")
    assert 0 < said < over, done.stdout
    for rank in range(ranks):  # as if every rank had a disk of its own
        alone = tmp_path / f"alone{rank}"
        alone.mkdir()
        name = f"run-rank{rank}.db" if rank else "run.db"
        (alone / name).write_bytes((tmp_path / "run" / name).read_bytes())
        (finding,) = [f for f in read(read_run(alone)).findings if f.fault == "loop.rank-desync"]
        assert (
            "2.weight" in finding.evidence[0].text
            and "after 150 steps, after 100 they were the same" in finding.evidence[0].text
        )


@pytest.mark.timeout(300)
def test_training_on_two_ranks_is_the_same_bit_for_bit(tmp_path: Path) -> None:
    watched, bare = (
        ranks_run(tmp_path, DRIFT, 2, w, STEPS=60, DRIFTS=1000).stdout for w in (True, False)
    )
    weights = [re.findall(r"weights (\[.*\])", out) for out in (watched, bare)]
    assert weights[0] and weights[0] == weights[1]
    run = read_run(tmp_path / "run")
    for rank in (run, *run.ranks):
        assert rank.agreement.found == {} and not rank.off
    (other,) = run.ranks
    assert other.agreement.compared >= 6 and other.agreement.batches[0] == 0
    assert not [f for f in read(run).findings if f.fault.startswith("loop.rank")]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("crashes", [0, pytest.param(-1, marks=pytest.mark.long)])
def test_ranks_that_take_another_number_of_steps_end_as_without_us(
    tmp_path: Path, crashes: int
) -> None:
    began = time.monotonic()
    done = ranks_run(tmp_path, UNEVEN, 2, CRASHES=crashes)
    assert time.monotonic() - began < 90
    assert (done.returncode == 0) is (crashes < 0), done.stdout
    if crashes < 0:
        assert {"rank 0", "rank 1"} == set(re.findall(r"rank \d(?= ends)", done.stdout))
    else:
        assert "bad batch" in done.stdout
    assert "failed at step" not in done.stdout

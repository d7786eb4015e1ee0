"""Ranks that wait for each other are found and ended; ranks that merely wait are left alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from sawbones.faults.loop.rank_shape_mismatch.check import check
from sawbones.observe.watchdog import HANG_SECONDS, is_hang
from sawbones.schema import Site
from sawbones.schema.ranks import Collective
from sawbones.store import read_run
from sawbones.store.ring import Ring, read_ring

NOW = 1000.0


def stands(rank: int, op: str = "all_reduce", collectives: int = 7, **changes) -> dict:
    position = {
        "rank": rank,
        "pid": os.getpid(),
        "time": NOW - 1,
        "op": op,
        "shape": [4],
        "collectives": collectives,
    }
    return {
        **position,
        "step": 3,
        "site": None,
        "ended": False,
        "last": [],
        "still": HANG_SECONDS + 1,
        **changes,
    }


@pytest.mark.parametrize(
    ("positions", "expected"),
    [
        ([stands(0), stands(1, "barrier")], True),
        ([stands(0), stands(1, collectives=8)], True),
        ([stands(0), stands(1, shape=[5])], True),
        ([stands(0), stands(1, ended=True, still=0.0, time=0.0)], True),
        ([stands(0), stands(1)], False),  # the same call everywhere: it may just be large
        ([stands(0), None], False),  # the other one moves, or computes, or loads data
        ([stands(0), stands(1, "barrier", still=4.0)], False),
        ([stands(0), stands(1, "barrier", time=NOW - 60)], False),
        ([stands(0, ended=True), stands(1, ended=True)], False),
    ],
)
def test_it_is_a_hang_when_all_wait_and_not_for_the_same(positions: list, expected: bool) -> None:
    assert is_hang(positions, NOW) is expected


def test_the_last_collectives_outlive_the_process_in_order(tmp_path: Path) -> None:
    ring = Ring(tmp_path, 1)
    for number in range(40):
        callers = [
            ["a.py", 3, "main", "x" * (400 if number == 39 else 20)],
            ["a.py", 9, "<module>", "y" * 80],
        ]
        ring.write(number, "all_reduce" if number % 2 else "barrier", [number], 5, None, callers)
    rows = read_ring(tmp_path, 1)
    assert [row.number for row in rows] == list(range(8, 40))
    assert rows[-2].callers == (
        Site("a.py", 3, "main", "x" * 20),
        Site("a.py", 9, "<module>", "y" * 80),
    )
    kept = rows[-1].callers  # those that fit, the nearest first
    assert [(site.file, site.line, site.function) for site in kept] == [("a.py", 3, "main")]
    assert replace(rows[-1], callers=()) == Collective(39, "all_reduce", (39,), 5)


UNEVEN = """
import time
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
net = DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(6 + rank):
    optimizer.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
open(f"stopped-{rank}", "w").write(str(time.time()))
dist.barrier()
"""

PATIENT = """
import time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
x = torch.ones(4, requires_grad=True)
x.square().sum().backward()
if dist.get_rank() == 0:
    time.sleep(22)
dist.barrier()
print("all there", dist.get_rank())
"""


def _run(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(script, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "sawbones",
        "run",
        "--quiet",
        "--out",
        "run",
        "--nproc-per-node",
        "2",
        "train.py",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=240, env=environment
    )


@pytest.mark.timeout(300)
def test_a_hang_is_told_within_30_seconds_with_the_line_of_each_rank_and_ended(
    tmp_path: Path,
) -> None:
    done = _run(tmp_path, UNEVEN)
    took = time.time() - float((tmp_path / "stopped-0").read_text())
    assert done.returncode != 0
    assert took < 40  # 30 s, and torchrun's own end
    barrier = UNEVEN.splitlines().index("dist.barrier()") + 1
    backward = barrier - 3
    assert (
        f"rank 0, step 6, after 1 collectives: waits in barrier at train.py:{barrier}"
        in done.stderr
    )
    assert f"waits in backward at train.py:{backward}" in done.stderr
    run = read_run(tmp_path / "run")
    assert [r.ending.kind for r in (run, *run.ranks)] == ["hang", "hang"]
    assert max(p.still for p in run.hang) < 30
    found = list(check(run))
    assert len(found) == 1 and {s.line for s in found[0].where} >= {barrier, backward}


@pytest.mark.timeout(300)
def test_a_rank_may_keep_the_others_waiting(tmp_path: Path) -> None:
    done = _run(tmp_path, PATIENT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("all there") == 2
    run = read_run(tmp_path / "run")
    assert [r.ending.kind for r in (run, *run.ranks)] == ["finished", "finished"]
    assert list(check(run)) == []

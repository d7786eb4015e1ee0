"""Scripts that start their training processes themselves, without torchrun."""

from __future__ import annotations

import pytest
from processes import Bench

WORKER = """
    import os
    import socket
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    from torch import nn

    def train(rank, world, port):
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
        dist.init_process_group("gloo", rank=rank, world_size=world)
        torch.manual_seed(rank)
        model = nn.parallel.DistributedDataParallel(nn.Linear(4, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(5):
            optimizer.zero_grad()
            model(torch.randn(8, 4)).square().mean().backward()
            optimizer.step()
        dist.destroy_process_group()

    def free_port():
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            return s.getsockname()[1]
"""
STYLES = {
    "torch spawn": """
    if __name__ == "__main__":
        mp.spawn(train, args=(2, free_port()), nprocs=2)
""",
    "own processes": """
    if __name__ == "__main__":
        mp.set_start_method("spawn")
        port = free_port()
        ranks = [mp.Process(target=train, args=(r, 2, port)) for r in range(2)]
        [p.start() for p in ranks]
        [p.join() for p in ranks]
""",
    "forked": """
    if __name__ == "__main__":
        context, port = mp.get_context("fork"), free_port()
        ranks = [context.Process(target=train, args=(r, 2, port)) for r in range(2)]
        [p.start() for p in ranks]
        [p.join() for p in ranks]
""",
}


@pytest.mark.parametrize("style", STYLES)
def test_every_process_that_trains_is_a_rank(bench: Bench, style: str) -> None:
    seen = bench.watched(WORKER + STYLES[style])
    assert seen.status == 0, seen.stderr[-3000:]
    run = seen.run
    assert run.world_size == 2 and [r.rank for r in (run, *run.ranks)] == [0, 1]
    for rank in (run, *run.ranks):
        assert rank.num_steps == 5 and rank.ending.kind == "finished" and not rank.off
        assert all(
            e.site is not None and e.site.code == "optimizer.step()" for e in rank.of_kind("step")
        )


def test_a_process_that_prepares_data_is_no_rank(bench: Bench) -> None:
    source = """
    import multiprocessing as mp
    import torch

    def prepare(path):
        torch.save(torch.ones(4), path)

    if __name__ == "__main__":
        p = mp.get_context("spawn").Process(target=prepare, args=("x.pt",))
        p.start(); p.join()
        w = torch.zeros(4, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad(); (w - torch.load("x.pt")).square().sum().backward(); optimizer.step()
"""
    seen = bench.watched(source)
    assert seen.status == 0, seen.stderr[-3000:]
    assert seen.run.num_steps == 3 and seen.run.world_size == 1 and not seen.run.ranks


def test_a_crash_in_a_rank_is_the_crash_of_the_run(bench: Bench) -> None:
    source = (
        WORKER.replace(
            "optimizer.zero_grad()", "optimizer.zero_grad(); assert step < 3, f'step {step}'"
        )
        + STYLES["torch spawn"]
    )
    seen = bench.watched(source)
    assert seen.status == 1
    assert seen.run.ending.kind == "exception" and seen.run.ending.exception == "AssertionError"
    assert seen.run.num_steps == 3


def test_ranks_that_the_script_started_and_that_wait_for_each_other_are_told_and_ended(
    bench: Bench,
) -> None:
    waits = "optimizer.step()\n            if step == 2 and rank == 0: dist.barrier()"
    seen = bench.watched(WORKER.replace("optimizer.step()", waits) + STYLES["torch spawn"])
    assert "the ranks wait for each other" in seen.stderr and "waits in barrier" in seen.stderr
    assert [r.ending.kind for r in (seen.run, *seen.run.ranks)] == ["hang", "hang"]

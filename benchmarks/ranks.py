"""What watching several ranks costs: bare and watched steps of one DDP training in turn, on real
processes over gloo.

    python benchmarks/ranks.py                      # two ranks of the 6-layer GPT on this CPU
    python benchmarks/ranks.py --ranks 4 --blocks 12

Each rank trains one model. Blocks of steps alternate: bare, watched, bare, ...; a ratio is that of
a watched block to the mean of its two bare neighbours, a null ratio that of a bare block to its two
nearest bare ones. Processor time of the process: the ranks share cores with each other and with
other programs, which wall-clock time would count. Medians, middle half in brackets. Bytes are those
of a run of a small model with as many tensors, on the disk, by rank and step: they depend on the
number of tensors alone. The comparison of ranks comes once in 50 steps, so it is measured by
itself: processor time of all threads of a rank from the fingerprints of gradients to the last look
into the store, requests and bytes as the store is given them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

COMPARED_EVERY = 50  # steps between two measurements of the parameters, which ranks are compared by


def worker(blocks: int, steps: int, out: Path) -> None:
    import torch
    from engine import GPT
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel

    from sawbones.observe.hooks import install_all
    from sawbones.observe.options import Options
    from sawbones.observe.recorder import Recorder

    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(GPT(256, 128, 6, 256, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    torch.manual_seed(rank)
    ids = torch.randint(256, (4, 129))

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        model(ids[:, :-1], ids[:, 1:]).backward()
        optimizer.step()

    recorder = Recorder(out / "timed", Options(deep_steps=(), deep_every=0), rank=rank)

    def block(watched: bool) -> float:
        patches = install_all(recorder) if watched else None
        step()  # not timed: caches and reducer settle
        distributed.barrier()
        began = time.process_time()
        for _ in range(steps):
            step()
        took = time.process_time() - began
        if patches is not None:
            patches.restore()
        return took

    block(True)
    times = [block(number % 2 == 1) for number in range(2 * blocks + 1)]
    compared = _cost_of_comparing(recorder, step)
    recorder.close()
    model = DistributedDataParallel(GPT(256, 128, 6, 16, 2))  # as many tensors, and quick
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    written = _bytes_of_a_run(out / "written", rank, step, Recorder, install_all, Options)
    (out / f"rank{rank}.json").write_text(
        json.dumps({"times": times, **written, **compared}), encoding="utf-8"
    )
    distributed.destroy_process_group()


class CountedStore:
    """Counts what one rank says to the store."""

    def __init__(self, store) -> None:  # type: ignore[no-untyped-def]
        self.store, self.requests, self.sent, self.received = store, 0, 0, 0

    def set(self, key: str, value: bytes) -> None:
        self.requests, self.sent = self.requests + 1, self.sent + len(key) + len(value)
        self.store.set(key, value)

    def check(self, keys: list[str]) -> bool:
        self.requests, self.sent, self.received = (
            self.requests + 1,
            self.sent + sum(map(len, keys)),
            self.received + 1,
        )
        return bool(self.store.check(keys))

    def get(self, key: str) -> bytes:
        value = bytes(self.store.get(key))
        self.requests, self.sent, self.received = (
            self.requests + 1,
            self.sent + len(key),
            self.received + len(value),
        )
        return value


def _cost_of_comparing(recorder, step, comparisons: int = 6) -> dict[str, float]:  # type: ignore[no-untyped-def]
    from sawbones.observe import agreement

    counted: list[CountedStore] = []
    connect = agreement.own_connection
    agreement.own_connection = lambda store: (
        counted.append(CountedStore(connect(store))) or counted[-1]
    )
    comparing = agreement.Agreement(recorder)
    main, whole = [], []
    for number in range(1, comparisons + 1):
        step()  # leaves gradients
        recorder.step = number * COMPARED_EVERY - 1
        began, began_main = time.process_time(), time.thread_time()
        comparing.step_begins()
        recorder.step += 1
        comparing.step_ended(recorder)
        main.append(time.thread_time() - began_main)
        time.sleep(1.5)  # all looks that follow
        whole.append(time.process_time() - began)
    store = counted[0]
    requests, sent, received = (
        store.requests / comparisons,
        store.sent / comparisons,
        store.received / comparisons,
    )
    comparing.close()
    agreement.own_connection = connect
    found = {
        "compare_ms": float(np.median(whole)) * 1e3,
        "compare_main_ms": float(np.median(main)) * 1e3,
    }
    return {
        **found,
        "compare_requests": requests,
        "compare_sent": sent,
        "compare_received": received,
    }


def _bytes_of_a_run(
    folder: Path, rank: int, step, recorder_class, install_all, options
) -> dict[str, float]:  # type: ignore[no-untyped-def]
    """A run of 2 x COMPARED_EVERY steps: what the second half adds to the disk, so that the start
    is not counted.
    """
    recorder = recorder_class(folder, options(deep_steps=(), deep_every=0), rank=rank)
    patches = install_all(recorder)
    sizes = []
    for _ in range(2):
        for _ in range(COMPARED_EVERY):
            step()
        recorder.writer.flush()
        path = recorder.writer.path
        with sqlite3.connect(path, timeout=10) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        sizes.append(path.stat().st_size)
    patches.restore()
    recorder.close()
    beside = sum(
        p.stat().st_size
        for p in folder.glob(f"*rank{rank}.*")
        if p.suffix in (".ring", ".json", ".txt")
    )
    return {
        "bytes_per_step": (sizes[1] - sizes[0]) / COMPARED_EVERY,
        "bytes_at_start": sizes[0],
        "bytes_beside": beside,
    }


def ratios(times: list[float]) -> tuple[list[float], list[float]]:
    watched = [times[i] / ((times[i - 1] + times[i + 1]) / 2) for i in range(1, len(times), 2)]
    null = [times[i] / ((times[i - 2] + times[i + 2]) / 2) for i in range(2, len(times) - 2, 2)]
    return watched, null


def shown(values: list[float]) -> str:
    low, middle, high = np.percentile(values, [25, 50, 75])
    return f"{middle:.3f} ({low:.3f}-{high:.3f})"


def main() -> None:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--blocks", type=int, default=12, help="watched blocks")
    p.add_argument("--steps", type=int, default=4, help="steps per block")
    p.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    given = p.parse_args()
    if given.worker:
        worker(given.blocks, given.steps, given.worker)
        return
    with tempfile.TemporaryDirectory() as folder:
        torchrun = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            str(given.ranks),
        ]
        own = [
            __file__,
            "--blocks",
            str(given.blocks),
            "--steps",
            str(given.steps),
            "--worker",
            folder,
        ]
        load = os.getloadavg()[0]
        subprocess.run([*torchrun, *own], check=True)
        results = [
            json.loads((Path(folder) / f"rank{rank}.json").read_text())
            for rank in range(given.ranks)
        ]
    watched = [ratio for r in results for ratio in ratios(r["times"])[0]]
    null = [ratio for r in results for ratio in ratios(r["times"])[1]]
    bare = [t / given.steps * 1e3 for r in results for t in r["times"][::2]]
    per_step = max(r["bytes_per_step"] for r in results)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    machine = (
        f"{platform.machine()}, {os.cpu_count()} cores, load average {load:.1f} before and "
        f"{os.getloadavg()[0]:.1f} after"
    )
    print(f"commit {commit}, {machine}")
    print("| ranks | bare step, processor ms | watched / bare | bare / bare |\n|---|---|---|---|")
    print(f"| {given.ranks} | {np.median(bare):.0f} | {shown(watched)} | {shown(null)} |")
    print(
        f"bytes per rank and step {per_step:.0f}, in the first {COMPARED_EVERY} steps "
        f"{results[0]['bytes_at_start']} in all,"
    )
    print(f"beside the database {max(r['bytes_beside'] for r in results)} per rank, once")
    print(f"10,000 ranks: {per_step * 1e4 / 1e6:.1f} MB per step to 10,000 files")
    worst = {
        name: max(r[name] for r in results) for name in results[0] if name.startswith("compare_")
    }
    share = worst["compare_ms"] / COMPARED_EVERY / float(np.median(bare))
    print(
        (
            f"comparison, once in {COMPARED_EVERY} steps: {worst['compare_ms']:.1f} ms of "
            "processor time "
        ),
        end="",
    )
    print(
        f"({worst['compare_main_ms']:.1f} ms of it in the training thread), {share:.4f} "
        "of a step per step"
    )
    print(
        f"{worst['compare_requests']:.1f} requests, {worst['compare_sent']:.0f} bytes sent and ",
        end="",
    )
    print(f"{worst['compare_received']:.0f} received per rank and comparison; ", end="")
    print(
        f"10,000 ranks: {worst['compare_requests'] * 1e4 / COMPARED_EVERY:.0f} requests "
        "per step at the store"
    )


if __name__ == "__main__":
    main()

"""What watching costs: bare and watched steps of the same training, alternating in one process,
beside other tools.

    python benchmarks/overhead.py                    # the CPU table, small models, growth with
    tensors, disk and memory, kill -9 python benchmarks/overhead.py --cuda             # GPT-2 124M
    on a CUDA device, eager and compiled, the whole recorder python benchmarks/overhead.py --parts
    table kill # some of it

Every way of watching trains a copy of its own. Steps alternate: bare, one way, bare, the next way,
... in an order drawn anew for each round; a ratio is that of a step to the mean of its two bare
neighbours, and the null row is a bare copy treated as if it were a way. Before each timed step of a
CPU one is made that is not timed: what the way before left in caches and allocator is no cost of
this one. Medians, middle half in brackets. On a CPU processor time is taken, which other programs
on the machine disturb less.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import os
import platform
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Spinning OpenMP threads distort timings on a busy machine; this has to be set before torch is
# imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "0")
os.environ.setdefault("WANDB_MODE", "offline")
os.environ.setdefault("WANDB_SILENT", "true")

import numpy as np
import torch
from engine import GPT
from peers import (
    anomaly,
    debug_mode,
    naive_norms,
    tensorboard_histograms,
    underflow_overflow,
    wandb_watch,
)
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from sawbones.capture.freezer import Freezer, Settings
from sawbones.observe.hooks import install_all
from sawbones.observe.options import Options, running
from sawbones.observe.pacing import deep_pace
from sawbones.observe.recorder import Recorder
from sawbones.store import read_run

SHALLOW = Options(deep_steps=(), deep_every=0)
EVERY_STEP_DEEP = Options(deep_steps=(), deep_every=1, paced=True)


def default_average(shallow: float, deep: float, bare_ms: float) -> tuple[float, int]:
    """Over 1,000 steps at the default sampling rate, and the number of deep steps among them."""
    pace, options, elapsed_s, count = deep_pace(), running(), 0.0, 0
    for step in range(1000):
        elapsed_s += shallow * bare_ms / 1e3
        if (options.is_deep(step) or pace.is_due) and pace.allows(elapsed_s):
            pace.paid((deep - shallow) * bare_ms / 1e3)
            elapsed_s += (deep - shallow) * bare_ms / 1e3
            count += 1
    return elapsed_s / bare_ms, count


@dataclass
class Training:
    model: nn.Module
    optimizer: torch.optim.Optimizer
    loss_of: Callable[[nn.Module], torch.Tensor]
    around: Callable[[], contextlib.AbstractContextManager[Any]] = (
        contextlib.nullcontext
    )  # not timed
    inside: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext  # timed
    after_backward: Callable[[], object] = lambda: None
    times: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    close: Callable[[], object] = lambda: None

    def step(self) -> None:
        with self.inside():
            self.optimizer.zero_grad(set_to_none=True)
            self.loss_of(self.model).backward()
            self.after_backward()
            self.optimizer.step()


class Sawbones:
    """The whole recorder, its hooks installed around its own steps only."""

    def __init__(self, options: Options, keep_installed: bool = False) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.recorder = Recorder(self.folder, options)
        here = str(Path(__file__).parent)
        self._freezer = Freezer(
            self.recorder, Settings(root=here, script=__file__, working_folder=here)
        )
        self.recorder._deep_pace = (
            None  # deep steps as a run has them, but whenever they are asked for
        )
        self._keep = keep_installed
        self._patches: Any = None

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        if self._patches is None:
            self._patches = install_all(self.recorder)
        self.recorder.active = True
        try:
            yield
        finally:
            self.recorder.stop_deep(
                keep=False
            )  # a deep step begins as soon as the one before has ended
            if (
                self._keep
            ):  # taking hooks off and on again would make torch.compile check its guards anew
                self.recorder.active = False
            else:
                self._patches.restore()
                self._patches = None

    @contextlib.contextmanager
    def capturing(self) -> Iterator[None]:
        """The same recorder, with capture."""
        self.recorder.capture = self._freezer
        with self():
            yield
        self.recorder.capture = None

    def close(self) -> None:
        if self._patches is not None:
            self._patches.restore()
        self.recorder.active = True
        self.recorder.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def compare(
    bare: Training,
    ways: dict[str, Training],
    rounds: int,
    clock: Callable[[], float],
    settle: Callable[[], None] = lambda: None,
    steps: int = 1,
    warm_up: int = 3,
    untimed: int = 0,
) -> None:
    draw = random.Random(0)

    def timed(training: Training) -> float:
        with training.around():
            for _ in range(untimed):
                training.step()
            settle()
            start = clock()
            for _ in range(steps):
                training.step()
            settle()
            return (clock() - start) / steps * 1e3

    for _ in range(warm_up):
        for training in (bare, *ways.values()):
            timed(training)
    before = timed(bare)
    for _ in range(rounds):
        for way in draw.sample(list(ways.values()), len(ways)):
            own = timed(way)
            after = timed(bare)
            bare.times.append(after)
            way.times.append(own)
            way.ratios.append(own / ((before + after) / 2))
            before = after
    for training in (bare, *ways.values()):
        training.close()


def spread(values: list[float], digits: int = 3) -> str:
    low, middle, high = np.percentile(values, [25, 50, 75])
    return f"{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def cpu_table(rounds: int) -> str:
    torch.manual_seed(0)
    model = GPT(4096, 128, 6, 256, 8)
    ids = torch.randint(0, 4096, (8, 129))

    def make() -> Training:
        own = copy.deepcopy(model)
        return Training(
            own, torch.optim.AdamW(own.parameters(), lr=3e-4), lambda m: m(ids[:, :-1], ids[:, 1:])
        )

    bare = make()
    names = (
        "null (bare again)",
        "Sawbones, shallow step",
        "Sawbones, deep step",
        "naive per-parameter norms",
        "torch DebugMode",
        "autograd.detect_anomaly",
        "HF DebugUnderflowOverflow",
        "wandb.watch, every step, offline",
        "TensorBoard histograms",
    )
    ways = {name: make() for name in names}
    for name, options in (
        ("Sawbones, shallow step", SHALLOW),
        ("Sawbones, deep step", EVERY_STEP_DEEP),
    ):
        watching = Sawbones(options)
        ways[name].around, ways[name].close = watching, watching.close
    ways["naive per-parameter norms"].after_backward = naive_norms(
        ways["naive per-parameter norms"].model
    )
    ways["torch DebugMode"].inside = debug_mode
    ways["autograd.detect_anomaly"].inside = anomaly
    underflow_overflow(ways["HF DebugUnderflowOverflow"])
    with tempfile.TemporaryDirectory() as folder:
        wandb_watch(ways["wandb.watch, every step, offline"], folder)
        tensorboard_histograms(ways["TensorBoard histograms"], folder)
        compare(bare, ways, rounds, time.process_time, untimed=1)
    shallow, deep = (
        float(np.median(ways[f"Sawbones, {kind} step"].ratios)) for kind in ("shallow", "deep")
    )
    lines = [
        (
            f"GPT, 6 layers, d=256, 8 x 128 tokens, AdamW; bare step {spread(bare.times, 0)} "
            f"ms of processor time; {rounds} rounds."
        ),
        "",
    ]
    lines += ["| every step | ratio to the bare step |", "|---|---|"]
    lines += [f"| {name} | {spread(way.ratios)} |" for name, way in ways.items()]
    average, count = default_average(shallow, deep, float(np.median(bare.times)))
    lines.append(
        f"| Sawbones, default sampling: deep steps among the first 1,000: {count}; "
        f"computed | {average:.3f} |"
    )
    return "\n".join(lines)


def small_models(rounds: int) -> str:
    """Processor microseconds added to a step of about a millisecond, with a DataLoader, all threads
    counted.
    """
    lines = [
        (
            "| model, DataLoader | tensors | bare us | added us, first 500 steps: mean "
            "(median) | added us, later | null us |"
        )
    ]
    lines.append("|---|---|---|---|---|---|")
    for layers in (2, 5, 12):
        torch.manual_seed(0)
        width = 64
        parts = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU())]
        model = nn.Sequential(*parts, nn.Linear(width, 10))
        data = TensorDataset(torch.randn(3200, width), torch.randint(0, 10, (3200,)))

        def make(model: nn.Module = model, data: TensorDataset = data) -> Training:
            own = copy.deepcopy(model)
            loader = DataLoader(data, batch_size=32, shuffle=True)
            batches: Iterator[Any] = iter(())

            def loss_of(m: nn.Module) -> torch.Tensor:
                nonlocal batches
                batch = next(batches, None)
                if batch is None:
                    batches = iter(loader)
                    batch = next(batches)
                return F.cross_entropy(m(batch[0]), batch[1])

            return Training(own, torch.optim.AdamW(own.parameters(), lr=1e-3), loss_of)

        results = []
        bare, again = make(), make()
        for training in (bare, again):
            for _ in range(60):
                training.step()
        for skip in (0, 500):
            watched = make()
            watching = Sawbones(SHALLOW)
            watched.around = watching
            with watching():
                for _ in range(skip):
                    watched.step()
            watched.close = watching.close
            bare.times, again.times, again.ratios = [], [], []
            # Of the first 500 steps every one counts, the very first too: their mean, not their
            # median.
            compare(
                bare,
                {"watched": watched, "null": again},
                rounds if skip else 25,
                time.process_time,
                steps=20,
                warm_up=0,
            )
            results.append((np.array(watched.ratios) - 1) * np.median(bare.times) * 1e3)
        null = (np.array(again.ratios) - 1) * np.median(bare.times) * 1e3
        early, late = results
        numbers = f"{np.mean(early):.0f} ({spread(list(early), 0)}) | " + " | ".join(
            spread(list(r), 0) for r in (late, null)
        )
        lines.append(
            f"| {layers + 1} linear layers | {len(list(model.parameters()))} | "
            f"{np.median(bare.times) * 1e3:.0f} | {numbers} |"
        )
    return "\n".join(lines)


def growth(rounds: int) -> str:
    """Microseconds of own time per step against the number of tensors, as the recorder itself
    measures them.
    """
    lines = ["| tensors | own time, us per step | us per tensor |", "|---|---|---|"]
    for count in (10, 100, 1000, 4000):
        torch.manual_seed(0)
        model = nn.ParameterList([nn.Parameter(torch.randn(8, 8)) for _ in range(count)])
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        watching = Sawbones(SHALLOW)
        with watching():
            for _ in range(rounds * 4):
                optimizer.zero_grad()
                torch.stack([p.sum() for p in model]).sum().backward()
                optimizer.step()
        watching.recorder.close()
        own = read_run(watching.folder).steps["watch_ms"][10:] * 1e3
        lines.append(f"| {count} | {spread(list(own), 0)} | {np.median(own) / count:.2f} |")
        shutil.rmtree(watching.folder, ignore_errors=True)
    return "\n".join(lines)


def long_run(steps: int) -> str:
    """A trivial model for many steps: memory and own time early and late, bytes on disk."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=16)
    watching = Sawbones(SHALLOW)
    memory: dict[int, float] = {}
    page = resource.getpagesize() / 2**20
    step = 0
    with watching():
        while step < steps:
            for x, y in loader:
                optimizer.zero_grad()
                F.mse_loss(model(x), y).backward()
                optimizer.step()
                step += 1
                if step % (steps // 10) == 0 or step == 1000:
                    memory[step] = int(Path("/proc/self/statm").read_text().split()[1]) * page
    watching.recorder.close()
    size = sum(p.stat().st_size for p in watching.folder.iterdir())
    run = read_run(watching.folder)
    own = run.steps["watch_ms"] * 1e3
    shutil.rmtree(watching.folder, ignore_errors=True)
    per_step, allowed = size / step, 1024 + 40 * 4
    early, late = np.median(own[600 : steps // 10]), np.median(own[-steps // 10 :])
    marks = ", ".join(f"{mb:.0f} at {at:,}" for at, mb in sorted(memory.items()))
    return "\n".join(
        [
            f"- {step:,} steps recorded, {run.num_steps:,} step rows read back",
            f"- disk: {per_step:.0f} bytes per step with 4 tensors (budget {allowed})",
            f"- memory of the process in MB: {marks}",
            f"- own time per step: {early:.0f} us in the first tenth, {late:.0f} us in the last",
        ]
    )


KILLED = """
import json, sys, time, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(16, 8)
i = 0
while True:
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
    print(i, time.time(), flush=True)
    i += 1
    time.sleep(0.002)
"""


def kill(times: int) -> str:
    draw = random.Random(0)
    missing = []
    opened = 0
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            script, out = Path(folder, "train.py"), Path(folder, "run")
            script.write_text(KILLED)
            command = [
                sys.executable,
                "-m",
                "sawbones",
                "run",
                "--quiet",
                "--out",
                str(out),
                str(script),
            ]
            with subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            ) as process:
                assert process.stdout is not None
                process.stdout.readline()
                time.sleep(draw.uniform(0.1, 3.0))
                process.send_signal(signal.SIGKILL)
                lines = [
                    line.split()
                    for line in process.stdout.read().splitlines()
                    if line.count(" ") == 1
                ]
            run = read_run(out)
            opened += run.ending.kind == "killed"
            lost = [float(when) for i, when in lines if int(i) >= run.num_steps]
            missing.append(float(lines[-1][1]) - lost[0] if lost else 0.0)
    lost_s = f"{max(missing):.2f} s at most, median {np.median(missing):.2f} s"
    return f"- {opened} of {times} run folders open after kill -9; missing at the end: {lost_s}"


def gpt2(batch: int, compiled: bool, rounds: int) -> dict[str, str]:
    torch.manual_seed(0)
    model = GPT(50304, 1024, 12, 768, 12).cuda()
    ids = torch.randint(0, 50257, (batch, 1025), device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    run = torch.compile(model) if compiled else model

    def loss_of(m: nn.Module) -> torch.Tensor:
        with torch.autocast("cuda", torch.bfloat16):
            return m(ids[:, :-1], ids[:, 1:])

    # One model for all: a second copy of the activations would not fit beside the first at the
    # larger batch.
    watching = Sawbones(SHALLOW, keep_installed=compiled)
    bare, again = Training(run, optimizer, loss_of), Training(run, optimizer, loss_of)
    shallow = Training(run, optimizer, loss_of, around=watching, close=watching.close)
    captured = Training(run, optimizer, loss_of, around=watching.capturing)
    # About a second each: a training loop does not wait for its device after every few steps.
    block = 384 // batch
    ways = {"null": again, "shallow": shallow, "with capture": captured}
    compare(bare, ways, rounds, time.perf_counter, torch.cuda.synchronize, steps=block, warm_up=4)
    lanes = [
        lane
        for held in watching.recorder.steps._held.values()
        for plan in held.engine._plans.values()
        for lane in plan.lanes
    ]
    turns = " and ".join(
        f"every {lane._budget.every}" if lane._budget.every > 1 else "every step" for lane in lanes
    )
    found = {
        "every": turns,
        "bare ms": f"{np.median(bare.times):.2f}",
        "shallow": spread(shallow.ratios),
        "with capture": spread(captured.ratios),
        "null": spread(again.ratios),
    }
    if not compiled:
        deeply = Sawbones(EVERY_STEP_DEEP)
        deep = Training(run, optimizer, loss_of, around=deeply, close=deeply.close)
        bare.times, bare.ratios = [], []
        compare(bare, {"deep": deep}, 3, time.perf_counter, torch.cuda.synchronize, warm_up=1)
        average, count = default_average(
            float(np.median(shallow.ratios)),
            float(np.median(deep.ratios)),
            float(np.median(bare.times)),
        )
        found |= {
            "deep step": spread(deep.ratios, 1),
            "default, 1,000 steps": f"{average:.3f} ({count} deep)",
        }
    return found


def cuda_table(rounds: int) -> str:
    lines = [
        (
            "GPT-2 124M, bf16 autocast, fused AdamW; blocks of 12 steps (32 x 1024) or 48, "
            "the whole recorder."
        ),
        "",
    ]
    lines += [
        (
            "Gradients are measured on every step; the column before the ratio says on which "
            "steps parameters and updates were."
        ),
        "",
        "| tokens | | bare ms | parameters, updates | shallow | with capture | null (bare "
        "/ bare) | deep step "
        "| default, average of 1,000 steps |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for compiled in (False, True):
        for batch in (32, 8):
            found = gpt2(batch, compiled, rounds)
            torch.cuda.empty_cache()
            torch._dynamo.reset()
            names = (
                "bare ms",
                "every",
                "shallow",
                "with capture",
                "null",
                "deep step",
                "default, 1,000 steps",
            )
            cells = " | ".join(found.get(k, "-") for k in names)
            lines.append(f"| {batch} x 1024 | {'compiled' if compiled else 'eager'} | {cells} |")
            print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--cuda", action="store_true", help="the CUDA table instead of the CPU parts"
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=100_000, help="of the long run")
    parser.add_argument("--parts", nargs="*", default=["table", "small", "growth", "long", "kill"])
    parser.add_argument("--commit", help="commit of the code, where there is no git to ask")
    parser.add_argument("--out", type=Path, help="file for the page; printed otherwise")
    given = parser.parse_args()
    parts: dict[str, tuple[str, Callable[[], str]]] = {
        "table": ("A step of a small GPT", lambda: cpu_table(given.rounds)),
        "small": ("Steps of about a millisecond", lambda: small_models(given.rounds)),
        "growth": ("Growth with the number of tensors", lambda: growth(given.rounds)),
        "long": ("A long run", lambda: long_run(given.steps)),
        "kill": ("kill -9 at a random moment", lambda: kill(20)),
    }
    if given.cuda:
        parts, given.parts = (
            {"cuda": ("Steps of GPT-2", lambda: cuda_table(given.rounds))},
            ["cuda"],
        )
    commit = (
        given.commit
        or subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True
        ).stdout.strip()
    )
    device = (
        torch.cuda.get_device_name()
        if given.cuda
        else f"{platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads"
    )
    load = f"; load average {os.getloadavg()[0]:.1f} before" if not given.cuda else ""
    page = [
        "# What watching costs",
        "",
        f"`{' '.join(['python', *sys.argv])}`, commit {commit}, torch {torch.__version__}, "
        f"Python {platform.python_version()}, {device}{load}.",
        "",
        __doc__.strip().split(chr(10) * 2)[-1],
        "",
    ]
    for name in given.parts:
        title, measure = parts[name]
        text = measure()
        print(f"\n## {title}\n\n{text}", flush=True)
        page += [f"## {title}", "", text, ""]
        if given.out:
            given.out.parent.mkdir(parents=True, exist_ok=True)
            given.out.write_text("\n".join(page))
    print(json.dumps({"done": given.parts}))


if __name__ == "__main__":
    main()

"""Does the reference pipeline learn at its default settings, and how fast?

    PYTHONPATH=src python benchmarks/trainer.py [--results FOLDER] [--commit HASH]

Trains reverse and translation exactly as `sawbones train --task TASK` does and memorises one batch
with both architectures; on a CUDA device in float32, bfloat16 and float16. Writes a dated page and
exits 1 when a target is missed.
"""

from __future__ import annotations

import os

# Threads that spin while waiting distort timings on a shared machine; must be set before torch is
# loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "0")

import argparse
import platform
import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from sawbones.trainer.config import ARCHS, RunOptions, TrainConfig, defaults_for, without_noise
from sawbones.trainer.distributed import Ranks, pick_device
from sawbones.trainer.loop import run_training, train_step
from sawbones.trainer.pipeline import build_pipeline
from sawbones.trainer.provenance import git_commit, versions

ACCURACY_TARGET = 0.99
SECONDS_TARGET = 180
OVERFIT_LOSS_TARGET = 0.01
OVERFIT_STEPS = 300


@dataclass(frozen=True)
class Row:
    what: str
    amp: str
    result: str
    steps: int
    skipped: int
    seconds: float
    cpu_seconds: float
    tokens_per_s: float
    is_met: bool


def learn(task: str, amp: str) -> Row:
    config = replace(defaults_for(task), amp=amp)
    started = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        run = run_training(config, RunOptions(out=Path(folder)), quiet=True)
    assert run.test is not None
    accuracy = run.test.free_sequence_accuracy
    return Row(
        what=f"learn {task}, target at least {ACCURACY_TARGET:.0%} of held-out sequences",
        amp=amp,
        result=f"{accuracy:.1%} test, {run.val.free_sequence_accuracy:.1%} validation",
        steps=run.steps,
        skipped=run.skipped_steps,
        seconds=run.seconds,
        cpu_seconds=time.process_time() - started,
        tokens_per_s=run.tokens_per_s,
        is_met=accuracy >= ACCURACY_TARGET and run.seconds <= SECONDS_TARGET,
    )


def memorise(arch: str, amp: str, device: torch.device) -> Row:
    """`--overfit-batch 1`, until the loss is under the target."""
    base = defaults_for("reverse")
    config: TrainConfig = without_noise(
        replace(base, amp=amp, steps=OVERFIT_STEPS, overfit_batch=1)
    )
    config = replace(config, model=replace(config.model, arch=arch))
    pipeline = build_pipeline(config, RunOptions(), Ranks(), device)
    started, cpu, tokens = time.perf_counter(), time.process_time(), 0
    while pipeline.step < OVERFIT_STEPS and not pipeline.last_loss < OVERFIT_LOSS_TARGET:
        tokens += train_step(pipeline)["tokens"]
    seconds = time.perf_counter() - started
    return Row(
        what=(
            f"memorise one batch, {arch}, target under {OVERFIT_LOSS_TARGET} within "
            f"{OVERFIT_STEPS} steps"
        ),
        amp=amp,
        result=f"loss {pipeline.last_loss:.4f}",
        steps=pipeline.step,
        skipped=pipeline.precision.skipped,
        seconds=seconds,
        cpu_seconds=time.process_time() - cpu,
        tokens_per_s=tokens / seconds,
        is_met=pipeline.last_loss < OVERFIT_LOSS_TARGET,
    )


def hardware(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU {platform.machine()}, {torch.get_num_threads()} threads"


def page(rows: list[Row], device: torch.device, commit: str) -> str:
    lines = [
        "# The reference pipeline at its default settings",
        "",
        f"- date: {datetime.now(UTC):%Y-%m-%d}",
        f"- commit: {commit}",
        f"- hardware: {hardware(device)}",
        "- versions: " + ", ".join(f"{name} {version}" for name, version in versions().items()),
        (
            f"- command: `PYTHONPATH=src python benchmarks/trainer.py {' '.join(sys.argv[1:])}`"
        ).replace(" `", "`"),
        "",
        (
            "Seconds are of the whole run: data, training, evaluations, checkpoints. CPU "
            "seconds are those of the process:"
        ),
        (
            "on a shared machine they say what the run costs, and the seconds also what else "
            "was running."
        ),
        "Tokens per second are target tokens over the time of the training steps.",
        "",
        "| run | amp | result | steps | skipped | seconds | CPU seconds | tokens/s | met |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        numbers = (
            f"{r.steps} | {r.skipped} | {r.seconds:.1f} | {r.cpu_seconds:.1f} | "
            f"{r.tokens_per_s:.0f}"
        )
        lines.append(
            f"| {r.what} | {r.amp} | {r.result} | {numbers} | {'yes' if r.is_met else 'NO'} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--commit", help="commit of the code, where there is no git to ask")
    arguments = parser.parse_args()
    device = pick_device("auto", Ranks())
    modes = ("off", "bf16", "fp16") if device.type == "cuda" else ("off",)
    rows: list[Row] = []
    jobs: list[tuple[Callable[..., Row], tuple[Any, ...]]] = [
        (learn, (task, amp)) for task in ("reverse", "translation") for amp in modes
    ]
    jobs += [(memorise, (arch, amp, device)) for arch in ARCHS for amp in ("off", "fp16")]
    for measure, inputs in jobs:
        row = measure(*inputs)
        rows.append(row)
        print(
            f"{row.what} [{row.amp}]: {row.result}, {row.steps} steps, {row.seconds:.1f} s",
            flush=True,
        )
    name = re.sub(r"[^a-z0-9]+", "-", hardware(device).lower()).strip("-")
    arguments.results.mkdir(parents=True, exist_ok=True)
    path = arguments.results / f"trainer_{name}_{datetime.now(UTC):%Y%m}.md"
    path.write_text(page(rows, device, arguments.commit or git_commit() or "unknown"))
    print(f"written: {path}")
    return 0 if all(row.is_met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

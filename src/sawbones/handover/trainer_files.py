"""The reference pipeline as plain files to copy: the same modules, none of which imports Sawbones."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from sawbones.handover.package import requirements, write_folder

PACKAGE = "reference"
_SETUP = '''"""What is trained, and how: the one place to change before anything else."""

from dataclasses import replace
from pathlib import Path

from reference.config import RunOptions, TrainConfig, check, defaults_for


def setup(task="reverse", steps=None, seed=0, **more) -> TrainConfig:
    """One seed for every random stream; early stopping after 5 evaluations without gain."""
    config = replace(defaults_for(task), seed=seed, **more)
    config = replace(config, data=replace(config.data, seed=seed), steps=steps or config.steps)
    check(config)
    return config


def options(out="runs/demo", device="cpu") -> RunOptions:
    return RunOptions(out=Path(out), device=device)
'''
_TRAINER = '''"""Trains: python trainer.py --task reverse --steps 200"""

import argparse

from canonical_setup import options, setup
from reference.loop import run_training


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", default="reverse")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="runs/demo")
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    config = setup(given.task, given.steps, given.seed)
    result = run_training(config, options(given.out, given.device))
    print(f"{result.steps} steps, train loss {result.final_train_loss:.4f}, {result.val}")
    print(f"checkpoint {result.checkpoint.path}, by step: {given.out}/log.jsonl")


if __name__ == "__main__":
    main()
'''
_DEMO = """#!/bin/sh
# Two minutes on a CPU: install, smoke test, a short run.
set -e
cd "$(dirname "$0")"
python -m pip install -r requirements.txt
python -m pytest -q test_smoke.py
python trainer.py --task reverse --steps 200 --out runs/demo
"""
_SMOKE = '''"""A run of a few steps: finite, and the same twice."""

import json
import math
from dataclasses import replace

from canonical_setup import options, setup
from reference.loop import run_training


def losses(folder):
    config = setup("reverse", steps=4, batch_size=8)
    config = replace(config, data=replace(config.data, num_train=64, num_val=4, num_test=4))
    config = replace(config, model=replace(config.model, d_model=16, num_heads=2, d_ff=32))
    run_training(config, options(folder))
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [row["loss"] for row in rows if "grad_norm" in row]


def test_a_short_run_is_finite_and_repeats(tmp_path):
    first, second = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert len(first) == 4 and all(map(math.isfinite, first))
    assert first == second
'''
_README = """# A trainer to copy

`canonical_setup.py` says what is trained, `trainer.py` runs it, `reference/` is the pipeline: model, masks,
loss, data, sampling, optimizer, schedule, precision, checkpoints, evaluation. Nothing else is needed but the
packages of `requirements.txt`.

    sh demo_run.sh
"""


def write(folder: Path) -> int:
    """The number of files."""
    held = {
        "canonical_setup.py": _SETUP.encode(),
        "trainer.py": _TRAINER.encode(),
        "demo_run.sh": _DEMO.encode(),
        "test_smoke.py": _SMOKE.encode(),
        "README.md": _README.encode(),
        "requirements.txt": requirements(
            dict.fromkeys(("torch", "numpy", "safetensors", "tokenizers", "pytest"))
        ),
    }
    for file in files("sawbones.trainer").iterdir():
        if file.name.endswith((".py", ".txt")):
            held[f"{PACKAGE}/{file.name}"] = file.read_bytes()
    write_folder(folder, held)
    (folder / "demo_run.sh").chmod(0o755)
    return len(held)

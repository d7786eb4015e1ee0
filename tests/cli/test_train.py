"""`sawbones train` as a user runs it: real processes, real files."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SIZES = {
    "d-model": 16,
    "heads": 2,
    "num-train": 200,
    "num-eval": 16,
    "batch-size": 16,
    "eval-every": 50,
}
SMALL = [
    "--device",
    "cpu",
    *(word for flag, value in SIZES.items() for word in (f"--{flag}", str(value))),
]
KEYS = """seed checkpoint checkpoint_sha256 final_train_loss final_val_metric
steps seconds versions"""
FLAGS = """task arch positions seed steps batch-size accumulate amp lr warmup clip resume out overfit-batch disable-dropout
disable-amp disable-augment deterministic verify stop-after json"""


def sawbones(
    *arguments: object, launcher: tuple[str, ...] = ("-m",)
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *launcher, "sawbones", "train", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=200, env=environment)


def train(*arguments: object, **more: tuple[str, ...]) -> str:
    done = sawbones(*SMALL, *arguments, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_run_writes_the_promised_json(tmp_path):
    out = train("--steps", 4, "--out", tmp_path / "run", "--json", tmp_path / "result.json")
    result = json.loads((tmp_path / "result.json").read_text())
    assert list(result) == KEYS.split()
    assert result["steps"] == 4 and result["seed"] == 0 and 0 <= result["final_val_metric"] <= 1
    assert (
        hashlib.sha256(Path(result["checkpoint"]).read_bytes()).hexdigest()
        == result["checkpoint_sha256"]
    )
    assert "\x1b" not in out and "step 4/4" in out, "plain lines when piped"
    steps = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [s["step"] for s in steps if "lr" in s] == [1, 2, 3, 4]


@pytest.mark.long
def test_resuming_in_a_new_process_is_exact(tmp_path):
    flags = ["--steps", 6, "--amp", "fp16", "--accumulate", 3, "--seed", 5, "--task", "sort"]
    train(*flags, "--out", tmp_path / "a", "--json", tmp_path / "a.json")
    train(*flags, "--out", tmp_path / "b", "--stop-after", 4)
    train("--resume", tmp_path / "b" / "step-000004.safetensors", "--json", tmp_path / "b.json")
    hashes = [
        json.loads((tmp_path / name).read_text())["checkpoint_sha256"]
        for name in ("a.json", "b.json")
    ]
    assert hashes[0] == hashes[1]
    (tmp_path / "b" / "step-000006.safetensors").write_bytes(b"short")
    done = sawbones("--resume", tmp_path / "b")
    assert (
        done.returncode == 2
        and "is truncated" in done.stderr
        and "step-000004.safetensors" in done.stderr
    )
    assert done.stderr.count("\n") == 1


def test_two_ranks_equal_one(tmp_path):
    from safetensors.torch import load_file

    flags = ["--steps", 5, "--accumulate", 2, "--dtype", "float64", "--disable-dropout"]
    train(*flags, "--out", tmp_path / "one")
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m")
    train(*flags, "--out", tmp_path / "two", "--json", tmp_path / "two.json", launcher=launcher)
    one, two = (load_file(tmp_path / name / "step-000005.safetensors") for name in ("one", "two"))
    weights = [name for name in one if name.startswith("model/")]
    assert len(weights) > 20
    assert max(float((one[name] - two[name]).abs().max()) for name in weights) < 1e-6
    assert {"rng/0/torch", "rng/1/torch"} <= set(two), "each rank has generators of its own"
    losses = [
        [
            json.loads(line)["loss"]
            for line in (tmp_path / name / "log.jsonl").read_text().splitlines()
            if '"lr"' in line
        ]
        for name in ("one", "two")
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-9)


def test_verify_checks_properties_in_float64(tmp_path):
    out = train(
        "--verify",
        "--steps",
        3,
        "--arch",
        "decoder-only",
        "--positions",
        "rotary",
        "--out",
        tmp_path,
    )
    assert out.count("ok  ") == 4 and "FAILED" not in out and "3 steps" in out


PROBLEMS = {
    "No such option": ["--bogus"],
    "'--lr'": ["--lr", "fast"],
    "task is 'sing'; it must be one of copy, reverse": ["--task", "sing"],
    "amp is 'fp8'": ["--amp", "fp8"],
    "use --arch decoder-only": ["--task", "lm", "--arch", "encoder-decoder"],
    "does not split into 5 heads": ["--d-model", "16", "--heads", "5"],
    "lr is -1.0": ["--lr", "-1"],
    "exclude each other": ["--dtype", "float64", "--amp", "fp16"],
    "steps is 0": ["--steps", "0"],
    "no checkpoint at": ["--resume", "nowhere/step-000001.safetensors"],
    "is a file, not a folder": ["--out", "blocked/run"],
    "cannot write in": ["--json", "/proc/nowhere/result.json"],
    "is larger than the 200 training examples": [*SMALL, "--batch-size", "500"],
}


@pytest.mark.parametrize("message", PROBLEMS)
def test_a_problem_is_one_line_and_leaves_nothing(message, tmp_path, monkeypatch, capsys):
    from sawbones.cli.train import run

    monkeypatch.chdir(tmp_path)
    (tmp_path / "blocked").write_text("")
    with pytest.raises(SystemExit) as caught:
        run(PROBLEMS[message])
    error = capsys.readouterr().err
    assert caught.value.code == 2 and message in error and error.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["blocked"]


def test_a_resumed_run_cannot_change_its_settings(tmp_path, capsys):
    from sawbones.cli.train import run

    run([*SMALL, "--steps", "2", "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as caught:
        run(["--resume", str(tmp_path), "--lr", "0.5", "--task", "reverse"])
    assert caught.value.code == 2
    assert "--resume cannot change optim.lr: 0.5, was 0.003" in capsys.readouterr().err


def test_divergence_ends_with_status_1(tmp_path):
    done = sawbones(
        *SMALL, "--steps", 50, "--lr", "1e30", "--warmup", 0, "--clip", "1e30", "--out", tmp_path
    )
    assert (
        done.returncode == 1 and "no step was taken" in done.stderr and done.stderr.count("\n") == 1
    )


def test_help_does_not_load_torch():
    code = (
        "import sys, sawbones.cli.train; assert 'torch' not in sys.modules and 'numpy' not in "
        "sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    done = sawbones("--help")
    assert done.returncode == 0 and all(f"--{flag}" in done.stdout for flag in FLAGS.split())

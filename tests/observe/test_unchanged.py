"""Watching changes nothing: losses and random streams are the same, bit for bit, bare, watched and
diagnosed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from processes import Bench

from sawbones.store import read_run

HERE = Path(__file__).parent
HEALTHY = HERE.parent / "corpus" / "healthy"

SCRIPTS = {
    "reference trainer": (HERE / "scripts" / "reference_trainer.py", "watched"),
    "cnn": (HEALTHY / "batchnorm_cnn_restarts.py", "watched"),
    "lstm": (HEALTHY / "long_sequence_lstm.py", "diagnosed"),
    "gan with two optimizers": (HEALTHY / "gan_ring_two_optimizers.py", "watched"),
    "lbfgs": (HEALTHY / "lbfgs_closure.py", "diagnosed"),
    "amp float16": (HEALTHY / "fp16_scaler_cpu.py", "diagnosed"),
    "accumulation": (HEALTHY / "accumulation_with_remainder.py", "watched"),
    "hf trainer": (HEALTHY / "hf_trainer_gpt2.py", "watched"),
    "lightning": (HEALTHY / "lightning_classifier.py", "diagnosed"),
    "torch.compile": (HEALTHY / "compiled_mixer.py", "watched"),
    "handwritten optimizer": (HEALTHY / "handwritten_momentum_sgd.py", "diagnosed"),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_losses_and_random_streams_are_bit_identical(name: str, bench: Bench) -> None:
    script, mode = SCRIPTS[name]
    if name in ("hf trainer", "lightning"):
        pytest.importorskip("transformers" if name == "hf trainer" else name)
    command = [
        sys.executable,
        str(HERE / "driver.py"),
        f"bare,{mode}",
        str(bench.folder / "runs"),
        str(script),
    ]
    done = subprocess.run(
        command,
        cwd=bench.folder,
        env=bench.environment(strict=True),
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"mode"')]
    bare, seen = results
    assert bare["count"] > 5
    assert (bare["losses"], bare["streams"]) == (seen["losses"], seen["streams"])
    run = read_run(bench.folder / "runs" / mode)
    assert run.ending.kind == "finished" and run.num_steps > 3 and not run.off
    if not run.compiled:
        assert run.deep, "nothing was looked at deeply, so nothing was put to the test"


def test_two_ranks_are_bit_identical_and_each_is_recorded(bench: Bench) -> None:
    script = HERE / "scripts" / "ddp_two_ranks.py"
    torchrun = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
    ]
    ours = [
        sys.executable,
        "-m",
        "sawbones",
        "run",
        "--quiet",
        "--out",
        str(bench.folder / "run"),
        "--nproc-per-node",
        "2",
    ]
    printed = []
    for command in ([*torchrun, str(script)], [*ours, str(script)]):
        done = subprocess.run(
            command,
            cwd=bench.folder,
            env=bench.environment(strict=True),
            capture_output=True,
            text=True,
            timeout=250,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        # Both ranks and gloo's own messages share one pipe, so a line of ours may begin behind
        # somebody else's unfinished one.
        printed.append(
            sorted(
                re.findall(r"rank\d(?: -?0x[0-9a-fp.+-]+)+ total -?0x[0-9a-fp.+-]+", done.stdout)
            )
        )
    assert len(printed[0]) == 2 and printed[0] == printed[1]
    run = read_run(bench.folder / "run")
    assert [run.rank, *(r.rank for r in run.ranks)] == [0, 1]
    for one in (run, *run.ranks):
        assert one.world_size == 2 and one.num_steps == 8
        assert {e.rank for e in one.events} == {one.rank}
        assert [e.data["cls"] for e in one.of_kind("parallel")][:2] == [
            "DistributedDataParallel",
            "no_sync",
        ]
        assert [e.data["epoch"] for e in one.of_kind("set_epoch")] == [0, 1]
        assert any(e.data["op"] == "all_reduce" for e in one.of_kind("collective"))
        assert all(
            e.site is not None and e.site.file.endswith("ddp_two_ranks.py")
            for e in one.of_kind("parallel", "step")
        )

"""The lab from the command line: every patient listed, runs that repeat byte for byte, errors that
help.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from sawbones.cli.main import main
from sawbones.lab.ward import FAULTS, beds, truth_lines


def _lab(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sawbones", "lab", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd)


def test_list_names_every_script_of_the_folders(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["lab", "list"])
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()[:-1]]
    rooms = [p.parent for p in sorted(FAULTS.glob("*/*/lab.py"))]
    assert listed == [f"{room.parent.name}.{room.name.replace('_', '-')}" for room in rooms]


@pytest.mark.parametrize("healthy", [False, True], ids=["broken", "healthy"])
def test_a_run_writes_its_record_and_comes_out_the_same_every_time(
    healthy: bool, tmp_path: Path
) -> None:
    # The hardest one: its fault is an order that differs from process to process.
    fault, flags = "loop.nondeterminism", ["--healthy"] if healthy else []
    first, second = (
        _lab("run", fault, *flags, "--out", str(tmp_path / name), cwd=tmp_path)
        for name in ("a", "b")
    )
    assert first.returncode == second.returncode == 0, first.stderr
    name = f"{fault}-{'healthy' if healthy else 'broken'}"
    sums = [re.search(r"sha256 ([0-9a-f]{64})", done.stdout) for done in (first, second)]
    assert sums[0] and sums[1] and sums[0][1] == sums[1][1]
    with tarfile.open(tmp_path / "a" / f"{name}.tar.gz") as tar:
        assert tar.getnames() == [
            f"{name}/{part}" for part in ("checkpoint.safetensors", "command.txt", "metrics.jsonl")
        ]
    lines = [
        json.loads(line) for line in (tmp_path / "a" / "metrics.jsonl").read_text().splitlines()
    ]
    assert len(lines) > 30 and {"loss", "gradient_means", "first_layer", "last_layer"} <= set(
        lines[0]
    )
    assert lines[-1]["loss"] < 0.5 * lines[0]["loss"]
    assert "PYTHONHASHSEED=0" in (tmp_path / "a" / "command.txt").read_text()


def test_a_script_that_crashes_leaves_its_record_behind(tmp_path: Path) -> None:
    done = _lab("run", "pipeline.token-out-of-vocab", cwd=tmp_path)
    assert done.returncode == 0 and "ended with status 1" in done.stderr
    assert (
        tmp_path / "lab-runs" / "pipeline.token-out-of-vocab-broken" / "metrics.jsonl"
    ).read_text().count("\n") >= 1


def test_an_unknown_fault_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["lab", "run", "loss.double-sofmax"])
    assert "Nearest: loss.double-softmax" in capsys.readouterr().err


def test_a_pattern_that_matches_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["lab", "bench", "--only", "los.*"])
    assert "no fault of the lab matches 'los.*'" in capsys.readouterr().err


def test_truth_is_read_from_the_source(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("""x = 1
if patient.broken:
    x = 2
else:
    x = 3
for i in range(2):
    y = f(
        4 if patient.broken else 5,
    )
    if i:
        z = not patient.broken
for k in range(1 if patient.broken else 2):
    pass
""")
    assert truth_lines(script) == {2, 3, 4, 5, 7, 8, 9, 11, 12}


@pytest.mark.parametrize("bed", beds(), ids=lambda bed: bed.fault)
def test_a_script_asks_for_its_fault_in_few_lines(bed) -> None:
    assert 1 <= len(truth_lines(bed.script)) <= 12

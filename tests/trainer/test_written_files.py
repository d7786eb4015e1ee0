"""The pipeline as plain files: no import of Sawbones, and the same numbers as ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sawbones.cli.main import main
from sawbones.handover import trainer_files
from sawbones.trainer.config import PATIENCE, defaults_for

OURS = """
import sys
from dataclasses import replace
from pathlib import Path
from {package}.config import RunOptions, defaults_for
from {package}.loop import run_training
if {alone}: sys.modules["sawbones"] = None
config = replace(defaults_for("reverse"), steps=3, batch_size=8)
config = replace(config, data=replace(config.data, num_train=64, num_val=4, num_test=4, max_length=8))
model = replace(config.model, d_model=16, num_heads=2, num_layers=1, d_ff=32)
config = replace(config, model=model)
run_training(config, RunOptions(out=Path(sys.argv[1]), device="cpu"))
"""


def _losses(package: str, alone: bool, out: Path, folder: Path) -> list[object]:
    code = OURS.format(package=package, alone=alone)
    subprocess.run(
        [sys.executable, "-c", code, str(out)],
        cwd=folder,
        check=True,
        capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    rows = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [(row["loss"], row["grad_norm"]) for row in rows if "grad_norm" in row]


def test_written_files_give_the_same_numbers_without_sawbones(tmp_path: Path) -> None:
    trainer_files.write(tmp_path / "copy")
    for path in (tmp_path / "copy").rglob("*.py"):
        text = path.read_text()
        assert "import sawbones" not in text and "from sawbones" not in text
        compile(text, path.name, "exec")
    ours = _losses("sawbones.trainer", False, tmp_path / "ours", tmp_path)
    copied = _losses("reference", True, tmp_path / "theirs", tmp_path / "copy")
    assert len(ours) == 3 and ours == copied


@pytest.mark.long
def test_the_smoke_test_of_the_written_files_passes(tmp_path: Path) -> None:
    main(["train", "--write", str(tmp_path / "copy")])
    call = [sys.executable, "-m", "pytest", "-q", "-p", "no:sawbones", "test_smoke.py"]
    done = subprocess.run(call, cwd=tmp_path / "copy", capture_output=True, text=True)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_run_stops_early_after_five_evaluations_by_default() -> None:
    assert defaults_for("reverse").patience == PATIENCE == 5

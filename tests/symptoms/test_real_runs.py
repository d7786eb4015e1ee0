"""Scripts that are plainly ill, recorded and judged by the commands a user would type."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = """
import torch
from torch import nn

torch.manual_seed(0)
rows = torch.randn(STEPS * 32, 8)
labels = (rows[:, 0] > 0).long() + 2 * (rows[:, 1] > 0).long()
LABELS
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(STEPS):
    batch = slice(32 * step, 32 * step + 32)
    loss = nn.functional.cross_entropy(model(rows[batch]), labels[batch])
    TWIST
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def sawbones(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sawbones", *args],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=200,
    )


def script(steps: int, labels: str = "", twist: str = "") -> str:
    return SCRIPT.replace("STEPS", str(steps)).replace("LABELS", labels).replace("TWIST", twist)


def record(folder: Path, text: str) -> str:
    (folder / "train.py").write_text(text, encoding="utf-8")
    done = sawbones(folder, "run", "--out", "recorded", "train.py")
    assert done.returncode == 0, done.stderr
    return done.stderr


def judge(folder: Path) -> tuple[int, str, dict[str, Any]]:
    done = sawbones(folder, "diagnose", "--json", "report.json", "recorded")
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return done.returncode, done.stdout, report


def ill(report: dict[str, Any]) -> list[str]:
    return [row["symptom"] for row in report["symptoms"] if row["class"] == "ill"]


def test_a_loss_that_turned_nan_is_said_at_once_and_never_healthy(tmp_path: Path) -> None:
    twist = "loss = loss * torch.log(torch.zeros(())) * 0 if step == 16 else loss"
    said = record(tmp_path, script(189, twist=twist))
    warned = [line for line in said.splitlines() if "non-finite" in line]
    assert warned[0].endswith("non-finite: the loss is nan at step 16")
    assert int(warned[0].split("step ")[1].split(":")[0]) <= 16 + 5
    status, shown, report = judge(tmp_path)
    assert (status, report["verdict"]) == (1, "unexplained")
    assert ill(report) == ["non-finite"]
    first = shown.strip().splitlines()[0]
    assert first.startswith("Symptom: 173 of 189 losses are NaN, the first at step 16")
    assert "173 of 189 losses are NaN" in sawbones(tmp_path, "show", "recorded").stdout
    assert "ILL: non-finite from step 16" in sawbones(tmp_path, "runs", ".").stdout


def test_a_flat_loss_is_never_healthy(tmp_path: Path) -> None:
    record(tmp_path, script(128, labels="labels = labels[torch.randperm(len(labels))]"))
    status, shown, report = judge(tmp_path)
    assert (status, report["verdict"]) == (1, "unexplained")
    assert ill(report) == ["does-not-learn"]
    (symptom,) = (row for row in report["symptoms"] if row["class"] == "ill")
    assert symptom["expected"] == pytest.approx(1.386, abs=0.03)
    assert shown.strip().startswith("Symptom: the loss does not fall (")
    assert "next: sawbones diagnose train.py" in " ".join(shown.split())


def test_a_loss_with_the_wrong_sign_is_never_healthy(tmp_path: Path) -> None:
    record(tmp_path, script(128, twist="loss = -loss"))
    status, shown, report = judge(tmp_path)
    assert (status, report["verdict"]) == (1, "sick")
    assert ill(report) == ["diverges"]
    assert report["symptoms"][0]["explained_by"] == "loss.wrong-sign"
    assert shown.strip().startswith("Symptom: the loss climbs (")


def test_a_run_that_learns_is_healthy_and_says_by_how_much(tmp_path: Path) -> None:
    record(tmp_path, script(128))
    status, shown, report = judge(tmp_path)
    assert (status, report["verdict"]) == (0, "healthy")
    assert report["symptoms"] == []
    assert "It learns beyond a constant answer (1.3" in shown
    assert {
        "symptom": "not-repeatable",
        "why": "needs twin_run: the script was not run a second time",
    } in report["could_not_see"]


def test_a_smoke_test_of_a_few_steps_is_not_called_ill(tmp_path: Path) -> None:
    record(tmp_path, script(6))
    _, _, report = judge(tmp_path)
    assert ill(report) == []
    assert "does-not-learn" in {row["symptom"] for row in report["could_not_see"]}
    assert "too little was seen" in report["progress"]

"""A recording from when it worked, against the program as it is now."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sawbones.store import read_run
from sawbones.testing import assert_same_losses
from sawbones.trials.good_run import differences

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(256, 6)
y = (x @ torch.randn(6, 3)).argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
for epoch in range(3):
    for a, b in loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
"""
CHANGES = {
    "momentum": ("momentum=0.9", "momentum=0.5"),
    "learning rate": ("0.05", "0.1"),
    "number of parameters": ("32), nn.ReLU(), nn.Linear(32", "16), nn.ReLU(), nn.Linear(16"),
    "batch_size of loader 0": ("batch_size=32", "batch_size=16"),
    "order of events": ("opt.zero_grad()", "pass"),
    "values of the samples": ("x = torch.randn(256, 6)", "x = torch.randn(256, 6) * 2"),
}


def record(folder: Path, source: str, name: str) -> Path:
    (folder / "train.py").write_text(source)
    command = [sys.executable, "-m", "sawbones", "run", "--quiet", "--out", name, "train.py"]
    subprocess.run(command, cwd=folder, check=True, timeout=100)
    return folder / name


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One recording that is good, and one of a program in which everything was changed at once."""
    folder = tmp_path_factory.mktemp("project")
    changed = SCRIPT
    for old, new in CHANGES.values():
        assert old in changed
        changed = changed.replace(old, new)
    record(folder, changed, "changed")
    record(folder, SCRIPT, "good")
    return folder


def test_every_change_is_named_with_both_values(project):
    found = differences(read_run(project / "good"), read_run(project / "changed"))
    for name in CHANGES:
        (one,) = [d for d in found if name in d.text]
        assert one.site is None or one.site.file == "train.py"
    assert "SGD momentum: 0.5, in the good run 0.9" in {d.text for d in found}
    assert found[-1].what == "loss" and found[-1].step == 0


def test_a_recording_has_no_difference_from_itself(project):
    good = read_run(project / "good")
    assert differences(good, good) == ()


def test_a_later_commit_and_another_version_are_differences(project):
    good = read_run(project / "good")
    before = replace(good, environment={**good.environment, "commit": "a" * 40, "torch": "2.6.0"})
    now = replace(good, environment={**good.environment, "commit": "b" * 40})
    assert [d.what for d in differences(before, now)] == ["version", "commit"]


def test_diagnose_shows_them_in_its_report(project):
    command = ["diagnose", "--good", "good", "--json", "report.json", "changed"]
    done = subprocess.run(
        [sys.executable, "-m", "sawbones", *command],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=100,
    )
    report = json.loads((project / "report.json").read_text())
    texts = [d["text"] for d in report["against_good"]["differences"]]
    assert any("momentum" in text for text in texts)
    assert "good run" in done.stdout and "in the good run 0.9" in done.stdout
    (zeroed,) = [f for f in report["findings"] if f["fault"] == "loop.no-zero-grad"]
    assert any("order of events" in e["text"] for e in zeroed["evidence"])


def test_a_good_run_that_is_none_is_a_usage_error(project):
    command = [sys.executable, "-m", "sawbones", "diagnose", "--good", "none", "changed"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=100)
    assert done.returncode == 2 and "--good none is no recorded run" in done.stderr


def test_a_refactoring_keeps_its_losses_and_a_changed_program_does_not(project):
    assert_same_losses(project / "good", root=project, steps=6)
    good, changed = (read_run(project / name) for name in ("good", "changed"))
    with pytest.raises(AssertionError, match=r"in the good run .*momentum"):
        assert_same_losses(good, changed)
    cut = {name: values[:3] for name, values in good.steps.items()}
    with pytest.raises(AssertionError, match="3 steps were taken; expected 24"):
        assert_same_losses(good, replace(good, steps=cut))

"""The plugin in a pytest of its own, as a user has it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import subjects

USER = f"""
import sys
sys.path.insert(0, {str(Path(subjects.__file__).parent)!r})
import subjects


def test_well(sawbones):
    assert sawbones.check(subjects.subject, steps=4, layers=("data", "loss")).report.verdict == "healthy"


def test_sick(sawbones):
    sawbones.check(subjects.double_softmax, steps=4, layers=("loss",))


def test_soft(sawbones):
    sawbones.check(subjects.double_softmax, steps=4, layers=("loss",), soft=["loss.double-softmax"])
"""
WITHOUT = """
import sys


def test_nothing_is_imported():
    assert not {"torch", "rich", "sawbones.triage"} & set(sys.modules)
"""


def _pytest(file: Path, *args: str, seconds: int = 200) -> subprocess.CompletedProcess[str]:
    # Blocked under its entry point's name and loaded by its module, so that it is there once
    # whether or not it is installed.
    plugin = (
        "-p",
        "no:sawbones",
        "-p",
        "sawbones.integrations.pytest_plugin",
        "-p",
        "no:cacheprovider",
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--rootdir",
        str(file.parent),
        *plugin,
        *args,
        str(file),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, cwd=file.parent)


def test_hard_findings_fail_with_the_report_and_soft_ones_warn(tmp_path: Path) -> None:
    file = tmp_path / "test_user.py"
    file.write_text(USER, encoding="utf-8")
    done = _pytest(file)
    assert "1 failed, 2 passed, 1 warning" in done.stdout, done.stdout + done.stderr
    assert "SICK  1 root cause found" in done.stdout and "loss.double-softmax" in done.stdout
    assert "SawbonesWarning: loss.double-softmax: The loss gets probabilities" in done.stdout
    assert "engine.py" not in done.stdout  # the report, not a traceback through us


def test_who_does_not_use_it_pays_nothing(tmp_path: Path) -> None:
    file = tmp_path / "test_other.py"
    file.write_text(WITHOUT, encoding="utf-8")
    done = _pytest(file, "-W", "error")
    assert done.returncode == 0, done.stdout


def test_the_entry_point_is_declared() -> None:
    import tomllib

    pyproject = Path(__file__).parents[2] / "pyproject.toml"
    points = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]["entry-points"][
        "pytest11"
    ]
    assert points == {"sawbones": "sawbones.integrations.pytest_plugin"}


TRAINING = """
import random

import torch
from torch.nn import functional as F


def train(clears):
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(30):
        x = torch.randn(16, 4)
        loss = F.cross_entropy(model(x), (x[:, 0] > 0).long())
        if clears:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def test_sick():
    assert train(clears=False) < 0


def test_passes_with_a_fault():
    train(clears=False)


def test_fails_by_itself():
    torch.manual_seed(0)
    assert train(clears=True) < 0


TURNS = []


def test_flaky():
    loss = train(clears=True)
    TURNS.append(loss)
    assert len(TURNS) == 2


def test_without_training():
    assert torch.ones(2).sum() == 2
"""


@pytest.mark.long
def test_under_sawbones_failures_name_the_step_the_line_the_fix_and_the_seed(
    tmp_path: Path,
) -> None:
    file = tmp_path / "test_user.py"
    file.write_text(TRAINING, encoding="utf-8")
    done = _pytest(file, "--sawbones", seconds=280)
    assert "3 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    sick, _, rest = done.stdout.partition("test_fails_by_itself")
    assert "loop.no-zero-grad" in sick and "test_user.py:16" in sick
    assert "zero_grad()" in sick and "steps 1" in sick
    itself, _, flaky = rest.partition("_ test_flaky _")
    assert "flaky by seed" not in itself, "it fails with every seed"
    assert "flaky by seed" in flaky and "it sets no seed" in flaky
    assert "first difference: the values of a batch at step 0, test_user.py:13" in flaky
    assert "SawbonesWarning: loop.no-zero-grad" in done.stdout, "one that passes is warned of"

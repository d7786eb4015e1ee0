"""The plugin in a pytest of its own, as a user has it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


def _pytest(file: Path, *args: str) -> subprocess.CompletedProcess[str]:
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
    return subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=file.parent)


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

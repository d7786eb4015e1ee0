"""diagnose with findings that the user accepts: from the comment to the exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
x = torch.randn(64, 4)
y = x @ torch.tensor([1.0, -2.0, 0.5, 3.0])[:, None]
for step in range(40):
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""
FAULT = "loop.no-zero-grad"


def sawbones(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sawbones", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=200,
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A script without zero_grad, recorded."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "train.py").write_text(SCRIPT)
    done = sawbones(folder, "diagnose", "--no-experiments", "--keep-run", "kept", "train.py")
    assert done.returncode == 1 and FAULT in done.stdout, done.stdout + done.stderr
    return folder


def diagnosed(folder: Path, *flags: str) -> tuple[int, dict, str]:
    report = folder / "report.json"
    done = sawbones(folder, "diagnose", "--json", str(report), *flags, "kept")
    return done.returncode, json.loads(report.read_text()), done.stdout + done.stderr


def test_a_baseline_ends_with_0_and_lists_what_it_hides(project):
    written = diagnosed(project, "--write-baseline", "baseline.json")
    assert written[0] == 0 and "wrote baseline.json (1 finding)" in written[2]
    status, report, said = diagnosed(project, "--baseline", "baseline.json")
    assert (status, report["verdict"], report["findings"]) == (0, "healthy", [])
    (ignored,) = report["ignored"]
    assert (ignored["fault"], ignored["ignored_by"]) == (FAULT, "the baseline baseline.json")
    assert "No new fault found, 1 ignored" in said


def test_pyproject_and_a_comment_do_the_same(project):
    (project / "pyproject.toml").write_text(f'[tool.sawbones]\nignore = ["{FAULT}"]\n')
    try:
        status, report, _ = diagnosed(project)
        assert status == 0 and "pyproject.toml" in report["ignored"][0]["ignored_by"]
    finally:
        (project / "pyproject.toml").unlink()
    places = diagnosed(project)[1]["findings"][0]["where"]
    lines = SCRIPT.split("\n")
    lines[places[0]["line"] - 1] += f"  # sawbones: ignore[{FAULT}]"
    (project / "train.py").write_text("\n".join(lines))
    try:
        status, report, _ = diagnosed(project)
        assert status == 0 and "comment at train.py" in report["ignored"][0]["ignored_by"]
    finally:
        (project / "train.py").write_text(SCRIPT)


def test_a_missing_baseline_is_a_usage_error(project):
    done = sawbones(project, "diagnose", "--baseline", "none.json", "kept")
    assert done.returncode == 2 and "--write-baseline none.json" in done.stderr

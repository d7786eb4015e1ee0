"""Recordings lie in .sawbones/, which keeps itself out of git."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sawbones.cli.main import main

SCRIPT = """
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(4):
    optimizer.zero_grad()
    model(torch.ones(4, 2 if step < 3 else 5)).square().mean().backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a script was recorded until it failed."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "train.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "sawbones", "run", "--quiet", "train.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 1 and "Traceback" in done.stderr, "the script's own"
    return folder


def test_a_run_goes_there_by_default(place: Path) -> None:
    (recorded,) = (place / ".sawbones").glob("train-*")
    assert (recorded / "run.db").is_file()
    assert list((recorded / "bundles").glob("*.sawbones"))
    assert sorted(p.name for p in place.iterdir()) == [".sawbones", "train.py"]


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_git_sees_nothing_of_it(place: Path) -> None:
    assert (place / ".sawbones" / ".gitignore").read_text() == "*\n"
    subprocess.run(["git", "init", "-q"], cwd=place, check=True)
    status = subprocess.run(
        ["git", "status", "--short"], cwd=place, capture_output=True, text=True, check=True
    )
    shutil.rmtree(place / ".git")
    assert status.stdout == "?? train.py\n"


def test_runs_lists_them_and_an_error_names_those_nearby(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    with pytest.raises(SystemExit) as left:
        main(["runs"])
    listed = capsys.readouterr().out
    assert left.value.code == 0 and ".sawbones/train-" in listed
    with pytest.raises(SystemExit) as left:
        main(["show", ".sawbones/gpt"])
    said = capsys.readouterr().err
    assert left.value.code == 2
    assert "no recorded run in .sawbones/gpt (no run.db). Runs nearby: .sawbones/train-" in said


def test_a_run_that_has_ended_is_one_file(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    (recorded,) = Path(".sawbones").glob("train-*")
    with pytest.raises(SystemExit):
        main(["show", str(recorded)])
    told = capsys.readouterr().out
    assert "captured" in told and f"sawbones replay {recorded / 'bundles'}" in told
    assert max(map(len, told.splitlines())) <= 100
    assert not [p.name for p in recorded.iterdir() if p.name.startswith("run.db-")]


def test_rows_that_are_too_wide_stand_under_each_other(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "80")
    (recorded,) = Path(".sawbones").glob("train-*")
    with pytest.raises(SystemExit):
        main(["query", str(recorded), "select * from steps limit 1"])
    told = capsys.readouterr().out
    assert "  param_norm  " in told and "…" not in told


def test_clean_removes_what_is_old_and_keeps_what_is_sick(
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(place / ".sawbones", tmp_path / ".sawbones")
    monkeypatch.chdir(tmp_path)
    (recorded,) = Path(".sawbones").glob("train-*")

    def clean(*args: str) -> str:
        with pytest.raises(SystemExit):
            main(["clean", *args])
        return capsys.readouterr().out

    assert "0 runs" in clean("--older", "7d", "--yes")
    assert "1 sick kept" in clean("--keep-sick", "--yes")
    assert f"would remove {recorded}" in clean() and recorded.exists()
    assert f"removed {recorded}" in clean("--yes") and not recorded.exists()
    with pytest.raises(SystemExit) as ended:
        main(["clean", "--older", "soon"])
    assert ended.value.code == 2

"""`.ci/matrix` with interpreters that only answer: cells that fail, hang or are not there, a table
with all of them, and nothing half made after Ctrl-C.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Makes environments of itself; the version of torch that is asked for decides how it goes on.
INTERPRETER = """#!/usr/bin/env bash
case "$*" in
    "-c ") exit 0 ;;
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && echo "${PYTHONPATH:-none}" > "$3/path" ;;
    *"pip install"*"torch==9.9"*) echo "no such version"; exit 1 ;;
    *"pip install"*"torch==4.0"*) touch "${0%/*}/../asked"; sleep 300 & wait ;;
    *"pip install"*"torch=="*) echo "$*" | sed 's/.*torch==//' > "${0%/*}/../torch" ;;
    *"pip install"*) exit 0 ;;
    *"import torch"*) cat "${0%/*}/../torch" ;;
    *pytest*)
        case $(cat "${0%/*}/../torch") in
            3.1) echo "==== 1 failed, 2 passed in 1.0s ===="; exit 1 ;;
            3.2) sleep 300 ;;
            3.3) echo "killed before the summary"; exit 3 ;;
            *) echo "==== 3 passed in 1.0s ====" ;;
        esac ;;
esac
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    (root / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "matrix", root / ".ci" / "matrix")
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, root / name)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    programs = tmp_path / "programs"
    programs.mkdir()
    for version in ("3.11", "3.12"):
        (programs / f"python{version}").write_text(INTERPRETER)
        (programs / f"python{version}").chmod(0o755)
    return root


def _begun(repository: Path, *cells: str, **settings: str) -> subprocess.Popen[str]:
    path = f"{repository.parent / 'programs'}:/usr/bin:/bin"
    env = {**os.environ, "PATH": path, "PYTHONPATH": "/elsewhere", **settings}
    return subprocess.Popen(
        [".ci/matrix", *cells],
        cwd=repository,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def _rows(repository: Path) -> list[list[str]]:
    (file,) = (repository / "build" / "matrix").glob("results_*.md")
    text = file.read_text(encoding="utf-8")
    assert re.match(r"# Python and torch: \d{4}-\d\d-\d\d", text)
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| 3")]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", row[-1]) for row in rows)
    return rows


def test_every_cell_has_a_row_and_an_environment_of_its_own(repository: Path) -> None:
    cells = ("3.11:9.9", "3.7:3.0", "3.12:3.1", "3.12:3.3", "3.11:3.0", "3.12:3.0")
    matrix = _begun(repository, *cells)
    said, _ = matrix.communicate(timeout=120)
    assert matrix.returncode == 1
    told = [row[3] if len(row) > 5 else row[2] for row in _rows(repository)]
    assert "could not be installed" in told[0] and "no python3.7 here" in told[1]
    assert told[2].startswith("1 failed, 2 passed") and "ended with status 3" in told[3]
    assert told[4:] == ["3 passed in 1.0s"] * 2
    assert "2 of 6 passed" in said.splitlines()[-1]
    made = repository / "build" / "matrix"
    for name in ("3.11-3.0", "3.12-3.0", "3.12-3.1"):
        assert (made / name / ".ready").exists()
        assert (made / name / "path").read_text() == "none\n", "nothing of this checkout's own"
    assert not (made / "3.11-9.9" / ".ready").exists()


def test_all_that_pass_end_with_status_0(repository: Path) -> None:
    matrix = _begun(repository, "3.11:3.0")
    said, _ = matrix.communicate(timeout=60)
    assert (matrix.returncode, "1 of 1 passed" in said) == (0, True), said


def _waits(condition: Path) -> None:
    for _ in range(300):
        if condition.exists():
            return
        time.sleep(0.1)
    raise AssertionError(f"{condition} never came")


def test_ctrl_c_ends_what_runs_and_leaves_no_half_environment(repository: Path) -> None:
    matrix = _begun(repository, "3.11:3.0", "3.12:4.0", "3.11:3.1")
    half = repository / "build" / "matrix" / "3.12-4.0"
    _waits(half / "asked")
    matrix.send_signal(signal.SIGINT)
    said, _ = matrix.communicate(timeout=60)
    assert matrix.returncode == 130, said
    assert not half.exists()
    assert (half.parent / "3.11-3.0" / ".ready").exists()
    told = [" ".join(row) for row in _rows(repository)]
    assert len(told) == 2 and "3 passed" in told[0] and "interrupted" in told[1]
    assert "1 of 3 passed" in said
    commands = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert str(half) not in commands, "what it had started is gone"


def test_a_cell_that_hangs_does_not_hold_the_others_up(repository: Path) -> None:
    matrix = _begun(repository, "3.11:3.2", "3.12:3.0", MINUTES="0.05")
    said, _ = matrix.communicate(timeout=120)
    told = [" ".join(row) for row in _rows(repository)]
    assert "ran out of its 0.05 minutes" in told[0] and "3 passed" in told[1], said

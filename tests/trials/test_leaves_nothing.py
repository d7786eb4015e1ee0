"""Nothing is left behind: no process, no file outside of the run folder, and nothing of the user's
is changed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from trial_cases import SCRIPTS

from sawbones.isolation import copies, scratch
from sawbones.isolation.family import descendants
from sawbones.observe.options import Options
from sawbones.trials.bench import Bench, Patient

PLAIN = Options(deep_steps=(), deep_every=0, batch_samples=0)


def state_of(folder: Path) -> dict[str, str]:
    """Every file with its content, mode and time of change; every link with its goal."""
    found = {}
    for path in sorted(folder.rglob("*")):
        key = str(path.relative_to(folder))
        if path.is_symlink():
            found[key] = f"-> {os.readlink(path)}"
        elif path.is_file():
            facts = path.stat()
            found[key] = (
                f"{hashlib.sha256(path.read_bytes()).hexdigest()} {facts.st_mode:o} "
                f"{facts.st_mtime_ns} {facts.st_nlink}"
            )
        else:
            found[key] = "folder"
    return found


def wait_for(what: Callable[[], bool], seconds: float = 90.0) -> bool:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if what():
            return True
        time.sleep(0.1)
    return False


def alive(family: dict[int, str]) -> list[int]:
    """Those still running; a zombie that nobody has fetched yet is dead."""
    running = []
    for pid, born in family.items():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if fields[19] == born and fields[0] != "Z":
            running.append(pid)
    return running


@pytest.mark.parametrize("mode", ["kernel", "patched"])
def test_a_script_that_writes_everywhere_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("SAWBONES_ISOLATION", mode)
    monkeypatch.setattr(copies, "FILE_BYTES", 6000)  # so that the large files are not copied
    home, away = tmp_path / "home", tmp_path / "away"
    (away / "sub").mkdir(parents=True)
    home.mkdir()
    for name in ("a.txt", "b.txt", "c.txt", "sub/c.txt"):
        (away / name).write_text("keep\n")
    for number in (1, 2, 3):
        (home / f"large-{number}.bin").write_bytes(bytes(10_000))
    for name in ("result.txt", "notes.txt"):
        (home / name).write_text("the user's\n")
    (home / "linked").symlink_to(away, target_is_directory=True)
    shutil.copy(SCRIPTS / "writer.py", home / "train.py")
    before = state_of(tmp_path)
    with Bench(Patient("train.py", (str(away),), home), 120) as bench:
        run = bench.execute(PLAIN)
        folder = bench.scratch.folder
    assert run.ending.kind == "finished", bench.log_tail
    assert "done" in bench.log_tail
    assert state_of(tmp_path) == before
    assert not folder.exists()


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_a_hanging_script_is_ended_with_its_workers_and_ranks(num_ranks: int) -> None:
    seen: dict[int, str] = {}
    before = descendants(os.getpid())  # a browser of other tests, for one

    def look(_: Path) -> None:
        seen.update(descendants(os.getpid()))

    with Bench(Patient("endless.py", ("stuck",), SCRIPTS, num_ranks), 25) as bench:
        bench.execute(PLAIN, progress=look)
        folder = bench.scratch.folder
    assert len(seen) >= 3 * num_ranks, "a child and two loader workers per rank"
    ours = {pid: name for pid, name in seen.items() if pid not in before}
    assert wait_for(lambda: not alive(ours), 10), alive(ours)
    assert not folder.exists()


def start_diagnosis(tmp_path: Path) -> tuple[subprocess.Popen[bytes], dict[int, str], Path]:
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    temporary.mkdir()
    shutil.copy(SCRIPTS / "endless.py", home / "train.py")
    session = subprocess.Popen(
        [sys.executable, "-m", "sawbones", "diagnose", "--quiet", "--seconds", "300", "train.py"],
        cwd=home,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
    )
    # The child, the two workers of its loader, and something on record.
    assert wait_for(
        lambda: (
            len(descendants(session.pid)) >= 3
            and bool(list(temporary.glob("sawbones-*/run-*/run.db")))
        )
    )
    time.sleep(1.0)
    return session, descendants(session.pid), temporary


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl_c", "terminated"])
def test_an_interrupted_diagnosis_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    session, family, temporary = start_diagnosis(tmp_path)
    session.send_signal(number)
    status = session.wait(60)
    assert status == (4 if number is signal.SIGINT else 143)
    assert wait_for(lambda: not alive(family), 10), alive(family)
    assert list(temporary.iterdir()) == []
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["train.py"]


def test_children_die_with_a_killed_diagnosis_and_the_next_one_sweeps_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, family, temporary = start_diagnosis(tmp_path)
    held = list(temporary.glob("sawbones-*"))
    monkeypatch.setattr(scratch, "_YOUNG_SECONDS", 0.0)
    scratch.sweep(temporary)
    assert held and all((folder / scratch.MARK).exists() for folder in held), (
        "a folder in use is not swept"
    )
    session.kill()
    session.wait()
    assert wait_for(lambda: not alive(family), 10), alive(family)
    scratch.sweep(temporary)
    assert list(temporary.iterdir()) == []


def test_a_folder_without_our_own_mark_is_never_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "_YOUNG_SECONDS", 0.0)
    for name in ("sawbones-results", "sawbones-copied", "sawbones-forged"):
        (tmp_path / name).mkdir(mode=0o700)
        (tmp_path / name / "thesis.txt").write_text("years of work")
        (tmp_path / name / ".lock").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ours = scratch.Scratch(tmp_path)
    shutil.copy(ours.folder / scratch.MARK, tmp_path / "sawbones-copied" / scratch.MARK)
    (tmp_path / "sawbones-forged" / scratch.MARK).write_text("{}")
    before = state_of(tmp_path)
    scratch.sweep(tmp_path)
    assert state_of(tmp_path) == before, "one is held, the others are the user's"
    ours.close()
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("mode", ["kernel", "patched"])
def test_what_lies_beside_the_working_folder_is_found_from_the_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("SAWBONES_ISOLATION", mode)
    home = tmp_path / "project" / "code"
    home.mkdir(parents=True)
    for name in ("project/data/table.csv", "shared/names.txt", "project/lib/beside.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("WHERE = __file__" if name.endswith(".py") else name)
    (home / "train.py").write_text(
        "import sys\nsys.path.append('../lib')\nimport beside, torch\n"
        "print(open('../data/table.csv').read(), open('../../shared/names.txt').read())\n"
        "print('beside.py' in beside.WHERE)\n"
        "open('../data/table.csv', 'w').write('changed')\n"
        "print(open('../data/table.csv').read())\n"
    )
    before = state_of(tmp_path)
    with Bench(Patient("train.py", (), home), 120) as bench:
        run = bench.execute(PLAIN)
    said = bench.log_tail.split()
    assert said == ["project/data/table.csv", "shared/names.txt", "True", "changed"]
    assert run.environment["isolation"] == mode
    assert state_of(tmp_path) == before

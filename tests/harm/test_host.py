"""A script cannot tell `sawbones run` from `python`: the same output, status, files and losses,
bare and watched, for everything that is not in the list of allowed differences.

What a script sees and how it ends runs always; of the cases that take longer a fixed third, and all
of them in `make harm`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from host_runs import SOURCE, both, case_names, environment, script, written

from sawbones.store import read_run

EVERY = 3  # of the long cases runs in an ordinary test run
SHORT = [f"{name}:{case}" for name in ("sees.py", "ends.py") for case in case_names(name)]
LONG = [f"trains.py:{case}" for case in case_names("trains.py")]
SHOWS = (
    "import sys\n"
    "print(__name__, __package__, __file__, __spec__ and __spec__.name, sys.argv, sys.path[0])\n"
    "print(sys.orig_argv[1:], __doc__, __cached__ and __cached__[-12:], "
    "type(__loader__).__name__)\n"
)
ARRANGED: dict[str, tuple[dict[str, str], list[str]]] = {
    "module": ({"train.py": SHOWS}, ["-m", "train", "--lr", "1"]),
    "module in a package": (
        {
            "pkg/__init__.py": "",
            "pkg/size.py": "SIZE = 3",
            "pkg/train.py": f"from .size import SIZE\n{SHOWS}",
        },
        ["-m", "pkg.train", "-q"],
    ),
    "package with a main": (
        {"pkg/__init__.py": "A = 1", "pkg/__main__.py": f"from . import A\n{SHOWS}"},
        ["-m", "pkg", "a b"],
    ),
    "main of a package by name": (
        {"pkg/__init__.py": "A = 1", "pkg/__main__.py": f"from . import A\n{SHOWS}"},
        ["-m", "pkg.__main__"],
    ),
    "module that raises": ({"train.py": "def f():\n    1 / 0\nf()\n"}, ["-m", "train"]),
    "module of the standard library": ({}, ["-m", "json.tool", "--help"]),
    "module of a name space": ({"space/train.py": SHOWS}, ["-m", "space.train"]),
    "installed module": (
        {"test_it.py": "def test_it(tmp_path):\n    assert tmp_path.exists()\n"},
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--co", "test_it.py"],
    ),
    "folder with a main": ({"job/__main__.py": SHOWS, "job/part.py": ""}, ["job", "-x"]),
    "script in a folder": ({"a/train.py": SHOWS}, ["a/train.py"]),
    "script with a dot": ({"train.py": SHOWS}, ["./train.py"]),
    "script by a way around": ({"a/x.txt": "", "train.py": SHOWS}, ["a/../train.py"]),
    "flags behind the script": ({"train.py": SHOWS}, ["train.py", "--help", "-h", "--", "--x"]),
    "path with odd letters": ({"a?b#c%20d/tr ain.py": SHOWS}, ["a?b#c%20d/tr ain.py"]),
    "own module with a library's name": (
        {
            "train.py": "import queue, json\nprint(queue.MINE, json.dumps(1))",
            "queue.py": "MINE = 1",
        },
        ["train.py"],
    ),
    "syntax error": ({"train.py": "print('x'\n"}, ["train.py"]),
    "source with a cookie": ({"train.py": "# -*- coding: latin-1 -*-\nprint('x')\n"}, ["train.py"]),
    "doc and annotations": (
        {"train.py": '"""Text."""\nx: int = 1\nprint(__doc__, __annotations__)\n'},
        ["train.py"],
    ),
}
FLAGS: dict[str, list[str]] = {
    "warnings as errors": ["-W", "error::UserWarning"],
    "optimised": ["-O"],
    "unbuffered": ["-u"],
    "development mode": ["-X", "utf8", "-X", "dev"],
    "safe path": ["-P"],
}


def sampled(cases: list[str]) -> list[object]:
    why = "one of the two thirds of the long host cases that only `make harm` runs"
    skip = pytest.mark.skipif(not os.environ.get("SAWBONES_HARM"), reason=why)
    return [
        pytest.param(case, marks=[] if number % EVERY == 0 else [skip])
        for number, case in enumerate(cases)
    ]


def test_there_are_enough_cases() -> None:
    assert len(SHORT) + len(LONG) + len(ARRANGED) + len(FLAGS) >= 90


@pytest.mark.parametrize("given", [*SHORT, *sampled(LONG)])
def test_a_script_runs_as_under_python(given: str, tmp_path: Path) -> None:
    name, case = given.split(":")
    bare, watched = both(tmp_path, script(name), [name, case], stdin="first\nsecond\nrest")
    assert bare.stdout or bare.stderr or bare.status or case in SILENT
    assert watched == bare
    assert "is off from here" not in _log(tmp_path)


def _log(folder: Path) -> str:
    log = folder / "b" / "run" / "sawbones.log"
    return log.read_text() if log.exists() else ""


SILENT = ("exit_none", "exit_false", "exit_in_thread", "daemon_thread_left", "no_stdout")
SILENT += ("replaced_stdout",)


@pytest.mark.parametrize("name", sampled(list(ARRANGED)))
def test_it_is_started_as_python_starts_it(name: str, tmp_path: Path) -> None:
    files, args = ARRANGED[name]
    bare, watched = both(tmp_path, written(files), args)
    took = re.compile(r"in \d+\.\d+s")
    assert took.sub("", watched.stdout) == took.sub("", bare.stdout) or bare.status
    assert (watched.status, watched.stderr, watched.files) == (
        bare.status,
        bare.stderr,
        bare.files,
    )


@pytest.mark.parametrize("name", sampled(list(FLAGS)))
def test_flags_of_the_interpreter_count(name: str, tmp_path: Path) -> None:
    source = (
        f"import warnings\n{SHOWS}print(sys.flags, sys.warnoptions, __debug__, sys._xoptions)\n"
    )
    fill = written({"train.py": f"{source}assert not __debug__\nwarnings.warn('x')\n"})
    bare, watched = both(tmp_path, fill, ["train.py"], flags=FLAGS[name])
    assert watched == bare


def test_a_zip_file_runs(tmp_path: Path) -> None:
    def fill(work: Path) -> None:
        with zipfile.ZipFile(work / "job.pyz", "w") as file:
            file.writestr("__main__.py", f"import part\n{SHOWS}")
            file.writestr("part.py", "print('part')")

    bare, watched = both(tmp_path, fill, ["job.pyz", "a"])
    assert "part" in bare.stdout and (watched.stdout, watched.status) == (bare.stdout, bare.status)


def test_a_linked_script_finds_what_lies_beside_it(tmp_path: Path) -> None:
    def fill(work: Path) -> None:
        written({"code/train.py": f"import beside\n{SHOWS}", "code/beside.py": ""})(work)
        (work / "train.py").symlink_to(work / "code" / "train.py")

    bare, watched = both(tmp_path, fill, ["train.py"])
    assert bare.status == 0 and watched == bare


def test_a_reader_that_goes_away_ends_the_script_as_ever(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("for i in range(100_000):\n    print(i)\n")
    ours = ["-m", "sawbones", "run", "--quiet", "--out", str(tmp_path / "run")]
    ended = []
    for own in ([], ours):
        command = [sys.executable, *own, "train.py"]
        with subprocess.Popen(
            command,
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None and process.stderr is not None
            process.stdout.readline()
            process.stdout.close()
            text = process.stderr.read()
        ended.append((process.returncode, text))
    assert ended[0] == ended[1] and "BrokenPipeError" in ended[0][1]


@pytest.mark.parametrize("how", sampled(["deep", "brief", "shallow"]))
def test_an_alarm_that_raises_reaches_the_script_and_leaves_nothing_behind(
    how: str, tmp_path: Path
) -> None:
    num = "200" if os.environ.get("SAWBONES_HARM") else "60"
    _, watched = both(tmp_path, script("alarms.py"), ["alarms.py", how, num])
    assert (watched.stdout, watched.status) == (f"caught {num} switched off by us 0\n", 0)


@pytest.mark.parametrize("how", sampled(["brief", "deep", "shallow"]))
def test_what_another_thread_throws_in_reaches_the_script_and_leaves_nothing_behind(
    how: str, tmp_path: Path
) -> None:
    num = "200" if os.environ.get("SAWBONES_HARM") else "60"
    _, watched = both(tmp_path, script("alarms.py"), ["alarms.py", how, num, "thrown"])
    assert (watched.stdout, watched.status) == (f"caught {num} switched off by us 0\n", 0)
    assert "is off from here" not in _log(tmp_path)


@pytest.mark.skipif(not os.environ.get("SAWBONES_HARM"), reason="twenty runs: `make harm`")
def test_threads_that_train_never_crash(tmp_path: Path) -> None:
    for number in range(20):
        args = ["trains.py", "several_threads"]
        bare, watched = both(tmp_path / str(number), script("trains.py"), args)
        assert watched == bare and watched.status == 0


def test_watching_goes_on_once_one_thread_is_left(tmp_path: Path) -> None:
    args = ["trains.py", "threads_that_train_in_between"]
    bare, watched = both(tmp_path, script("trains.py"), args)
    assert watched == bare
    assert _log(tmp_path).count("Watching pauses at step") == 1
    run = read_run(tmp_path / "b" / "run")
    # Two of the main thread's three trainings of 12 steps come after threads that trained.
    assert run.num_steps >= 36 and not run.stopped
    uncleared = [e for e in run.events if e.kind == "step" and e.data["uncleared"]]
    assert uncleared == []


def test_losses_in_other_layouts_are_read(tmp_path: Path) -> None:
    _, watched = both(tmp_path, script("trains.py"), ["trains.py", "losses_in_other_layouts"])
    assert watched.status == 0 and "is off from here" not in _log(tmp_path)
    assert np.isfinite(read_run(tmp_path / "b" / "run").steps["loss"]).all()


FULL = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(300):
    optimizer.zero_grad()
    loss = model(torch.full((2, 64), i / 300)).square().mean()
    loss.backward()
    optimizer.step()
    if i % 100 == 0:
        print(loss.item().hex(), flush=True)
"""


@pytest.fixture
def small_disk(tmp_path: Path):
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting needs root; RLIMIT_FSIZE stands for it in tests/observe")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_does_not_end_a_good_training(small_disk: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FULL)
    (small_disk / "filler").write_bytes(bytes(20_000))
    run = ["-m", "sawbones", "run", "--out", str(small_disk / "run")]
    ended = [
        subprocess.run(
            [sys.executable, *own, "train.py"],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=120,
        )
        for own in ([], run)
    ]
    assert [e.returncode for e in ended] == [0, 0], ended[1].stderr
    assert ended[0].stdout == ended[1].stdout
    assert "Traceback" not in ended[1].stderr and "Training continues" in ended[1].stderr


def test_the_list_of_allowed_differences_is_the_documented_one() -> None:
    from sawbones.observe.differences import ALLOWED

    text = (SOURCE.parent / "docs" / "how-to" / "host-differences.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE)
    assert rows[2:] == [(d.what, d.why) for d in ALLOWED]

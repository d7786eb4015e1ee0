"""`sawbones attach`: what stacks say about a hang, and a real one read from outside."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sawbones.attach import Rank, Stack, conclude, look_at, python_processes
from sawbones.attach.stacks import Place, py_spy, training_thread

C10D = "/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
LOADER = "/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py"


def stack(*places: tuple[str, str, int]) -> Stack:
    return Stack("MainThread", tuple(Place(*place) for place in places))


def in_call(name: str, line: int) -> Stack:
    return stack(("_wait", C10D, 9), (name, C10D, 5), ("train", "/home/me/train.py", line))


def seen(rank: int, where: Stack, before: Stack | None = None, share: float = 0.0) -> Rank:
    return look_at(rank, 100 + rank, before or where, where, share)


def test_the_rank_that_has_not_come_is_named() -> None:
    loads = stack(("_get_data", LOADER, 3), ("train", "/home/me/train.py", 12))
    told = conclude([seen(0, in_call("all_reduce", 40)), seen(1, loads)])
    assert told.stuck
    assert told.text == (
        "rank 0 waits in all_reduce (/home/me/train.py:40) for rank 1, which waits for its data "
        "loader (/home/me/train.py:12)."
    )


def test_a_rank_that_is_at_work_is_slow_and_not_stuck() -> None:
    works = stack(("parse", "/home/me/data.py", 7))
    told = conclude([seen(0, in_call("barrier", 40)), seen(1, works, share=0.9)])
    assert told.stuck and told.text.endswith("It is at work there: slow rather than stuck.")


def test_ranks_in_different_collectives_wait_for_each_other() -> None:
    told = conclude([seen(0, in_call("all_reduce", 40)), seen(1, in_call("broadcast", 44))])
    assert told.stuck and "wait for each other: rank 0 in all_reduce" in told.text


def test_all_in_one_collective() -> None:
    told = conclude([seen(r, in_call("all_gather", 40)) for r in range(3)])
    assert told.stuck and told.text.startswith("All ranks stand in all_gather")


def test_a_training_that_goes_on_is_not_called_stuck() -> None:
    a, b = in_call("all_reduce", 40), stack(("train", "/home/me/train.py", 41))
    told = conclude([seen(0, b, before=a), seen(1, a, before=b)])
    assert not told.stuck


def test_joining_a_group_is_no_collective() -> None:
    joins = stack(("barrier", C10D, 8), ("init_process_group", C10D, 5), ("f", "/me/t.py", 3))
    assert seen(0, joins).doing == "joins the process group"


def test_the_thread_with_the_users_code_is_taken() -> None:
    rows = [
        {"thread_name": "MainThread", "frames": [{"name": "wait", "filename": LOADER, "line": 1}]},
        {"thread_name": "t", "frames": [{"name": "train", "filename": "/me/t.py", "line": 9}]},
    ]
    assert training_thread(rows, 1).user_place == Place("train", "/me/t.py", 9)


HANGS = """
import time, torch, torch.distributed as dist
def read_shard():
    while True:
        time.sleep(1)
dist.init_process_group("gloo")
if dist.get_rank() == 1:
    open("begun", "w").close()
    read_shard()
dist.all_reduce(torch.ones(4))
"""


@pytest.mark.skipif(
    not shutil.which("py-spy") and not Path(sys.executable).with_name("py-spy").exists(),
    reason="needs py-spy",
)
def test_two_real_ranks_that_hang(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HANGS)
    launch = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
    ]
    launcher = subprocess.Popen(
        [*launch, "train.py"],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        while not (tmp_path / "begun").exists():
            assert launcher.poll() is None
            time.sleep(0.1)
        time.sleep(1.0)
        command = [sys.executable, "-m", "sawbones", "attach", "--json", str(launcher.pid)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    finally:
        for process in python_processes(
            [launcher.pid]
        ):  # torchrun starts each in a session of its own
            os.kill(process.pid, signal.SIGKILL)
        os.killpg(launcher.pid, signal.SIGKILL)
        launcher.wait()
    if "ermission" in done.stderr:
        pytest.skip("needs the right to read other processes")
    told = json.loads(done.stdout)
    assert done.returncode == 1, done.stderr
    assert told["text"] == (
        "rank 0 waits in all_reduce (train.py:10) for rank 1, which is in read_shard (train.py:5)."
    )
    assert [row["where"]["line"] for row in told["ranks"]] == [10, 5]


def test_a_process_that_is_not_there_and_one_without_python(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from sawbones.cli.main import main

    with pytest.raises(SystemExit) as left:
        main(["attach", "999999999"])
    assert left.value.code == 2
    assert "there is no process 999999999" in capsys.readouterr().err
    sleeper = subprocess.Popen(["sleep", "30"])
    try:
        with pytest.raises(SystemExit):
            main(["attach", str(sleeper.pid)])
        assert "runs Python" in capsys.readouterr().err
    finally:
        sleeper.kill()
        sleeper.wait()


def test_without_py_spy_the_command_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Exception, match=r"pip install 'sawbones\[attach\]'"):
        py_spy()

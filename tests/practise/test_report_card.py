"""The expert's path is run, its outputs and times are shown, and the report card holds all of it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from sawbones.cli.main import main
from sawbones.practise import records
from sawbones.practise.colleague import report
from sawbones.practise.exercises import make
from sawbones.practise.expert import Step, _admitted, shown
from sawbones.practise.injecting import injectors
from sawbones.practise.measuring import Measured
from sawbones.trials.menu import parse


@pytest.fixture
def graded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> tuple[str, str]:
    """What is printed for an answer to an exercise whose script crashes, and the page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    exercise = make(3, 1)
    folder = tmp_path / "exercise-1"
    folder.mkdir()
    (folder / "train.py").write_bytes(exercise.broken.raw)
    (folder / records.MARK).write_text("one\n")
    records.keep(records.Record("one", 3, 1, None, 20.0, 0.0))
    (folder / "patch").write_text(exercise.fix)
    args = ["--fault", exercise.faults[0], "--line", "1", "--claim", "crashes"]
    args += ["--because", "<b>it</b> stops", "--fix", "patch", "--html", "card.html"]
    with pytest.raises(SystemExit) as end:
        main(["practise", "answer", *args])
    assert end.value.code == 0
    return capsys.readouterr().out, (tmp_path / "card.html").read_text(encoding="utf-8")


def test_the_path_of_the_expert_is_run_and_the_page_holds_every_line_of_it(graded) -> None:
    printed, page = graded
    path = printed.partition("## The expert's path")[2].partition("## Model answer")[0]
    commands = re.findall(r"\$ (.+?)   # (\d+\.\d) s", path)
    assert [command for command, _ in commands] == [
        "python train.py",
        "sawbones diagnose --seconds 120 train.py",
        "python mended.py",
    ]
    assert all(float(seconds) > 0 for _, seconds in commands)
    (fault,) = make(3, 1).faults
    assert "Error" in path and fault in path
    for command, seconds in commands:
        assert f"$ {command}   # {seconds} s" in page
    # Every row of the rubric, with its points and its reason, is on the page as it was printed.
    rows = re.findall(r"^ *(-?[\d.]+) / (\d+) +([a-z ]+): ", printed, flags=re.MULTILINE)
    assert len(rows) >= 10
    for points, most, part in rows:
        cells = f'<td>{part}</td><td class="num">{points}</td><td class="num">{most}</td>'
        assert cells in page, part
    total = re.search(r"^([\d.]+) of 100 points", printed, flags=re.MULTILINE)
    assert total is not None and f"{total[1]} of 100 points" in page
    assert "&lt;b&gt;it&lt;/b&gt; stops" in page and "<script" not in page
    assert "sawbones practise --seed 3 --level 1" in page


def test_a_step_shows_its_command_its_output_and_its_time() -> None:
    text = shown([Step("Why?", "python train.py", ("loss 1.2",), 3.21, 0)])
    assert "1. Why?" in text and "    $ python train.py   # 3.2 s\n    loss 1.2" in text


def test_every_trial_that_an_injector_names_exists() -> None:
    named = [one.trial for one in injectors().values() if one.trial]
    assert len(named) >= 20 and all(parse(name) for name in named)


def test_the_colleague_prints_nothing_that_only_a_watched_run_prints() -> None:
    log = (
        "/opt/lib/sawbones/observe/hooks/schedulers.py:85: UserWarning: order of calls",
        "  result = original(self, *args, **kwargs)",
        "  an indented line of the script",
    )
    text = report(make(3, 1), Measured(None, log), Measured(None, ()))
    assert "sawbones" not in text and "original(" not in text
    assert "UserWarning: order of calls" in text and "an indented line" in text


PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "practise.md"


@pytest.mark.long
def test_the_commands_of_the_page_run_one_after_the_other(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    commands = re.findall(r"^    (sawbones .+)$", text, flags=re.MULTILINE)
    assert len(commands) >= 10
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state")}
    for command in commands:
        for patch in tmp_path.glob("exercise-*"):
            (patch / "fix.patch").write_text((patch / "train.py").read_text())
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(command)],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, (command, done.stderr)
        assert done.stdout.strip() and "Traceback" not in done.stderr, command


def test_a_diagnosis_that_leaves_a_fault_out_is_not_passed_off_as_the_answer() -> None:
    step = Step("", "sawbones diagnose train.py", ("SICK", "1 · loop.no-step · proven"), 1.0, 1)
    assert _admitted(step, ("loop.no-step",)) == step
    added = _admitted(step, ("loop.no-step", "loss.wrong-sign")).output[-1]
    assert "does not name loss.wrong-sign here" in added

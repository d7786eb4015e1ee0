"""The path of somebody who knows, walked on the exercise: every command is run in a copy of the folder,
and its output and its time are kept.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from sawbones.practise.exercises import Exercise
from sawbones.practise.injecting import injectors

Say = Callable[[str], None]
FIRST_TRIAL = "overfit-one-batch"
MENDED = "mended.py"
LONGEST = 180  # seconds of one command
DIAGNOSE_SECONDS = 120
UNNAMED = "It does not name {} here: the model answer below says how it is confirmed."
_ENDS_DIAGNOSIS = re.compile(r"^(could not look|not needed|silent|note|The script's last lines)")
_OWN_LINE = re.compile(r"^sawbones: ")


@dataclass(frozen=True)
class Step:
    """One command, why it is next, and what came of it."""

    why: str
    command: str
    output: tuple[str, ...]  # the lines that tell something
    seconds: float
    status: int | None  # None: stopped after LONGEST seconds


def walk(exercise: Exercise, folder: Path, say: Say) -> list[Step]:
    """From the folder as it was handed out. What the person has put into it does not count."""
    with tempfile.TemporaryDirectory(prefix="practise-") as scratch:
        root = Path(scratch)
        for path in folder.iterdir():  # modules and data that an own script may read
            if path.is_file() and not path.name.startswith("."):
                (root / path.name).write_bytes(path.read_bytes())
        (root / exercise.broken.file).write_bytes(exercise.broken.raw)
        steps = []
        for why, command, told in _plan(exercise):
            if command.endswith(MENDED):
                (root / MENDED).write_bytes(exercise.healthy.raw)
            say(f"the expert's path: {command}")
            step = _ran(root, why, command, told)
            steps.append(_admitted(step, exercise.faults) if told is _findings else step)
        return steps


def _admitted(step: Step, faults: tuple[str, ...]) -> Step:
    """A diagnosis that leaves out what is there is not passed off as the answer."""
    text = " ".join(step.output)
    left_out = [one for one in faults if one not in text]
    if not left_out:
        return step
    return replace(step, output=(*step.output, UNNAMED.format(" and ".join(left_out))))


def _plan(exercise: Exercise) -> list[tuple[str, str, Callable[[str], list[str]]]]:
    script = exercise.broken.file
    known = injectors()
    early = bool(exercise.faults) and all(known[one].level == 1 for one in exercise.faults)
    plan: list[tuple[str, str, Callable[[str], list[str]]]] = [
        ("What is wrong to see?", f"python {script}", _last_lines)
    ]
    if not early:
        plan.append(("Is it the same again?", f"python {script}", _last_lines))
        trials = [FIRST_TRIAL, *(known[one].trial for one in exercise.faults)]
        named = ",".join(dict.fromkeys(filter(None, trials)))
        why = "Which layers can be cleared, and which rival causes?"
        plan.append((why, f"sawbones try {named} {script}", _all_lines))
    command = f"sawbones diagnose --seconds {DIAGNOSE_SECONDS} {script}"
    plan.append(("All of it measured in one go:", command, _findings))
    if exercise.faults:
        why = f"{MENDED} is {script} with the patch below. Does it heal?"
        plan.append((why, f"python {MENDED}", _last_lines))
    return plan


def _ran(root: Path, why: str, command: str, told: Callable[[str], list[str]]) -> Step:
    program, *rest = command.split()
    own = {"python": [sys.executable], "sawbones": [sys.executable, "-m", "sawbones"]}[program]
    began = time.monotonic()
    try:
        done = subprocess.run(
            [*own, *rest],
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=LONGEST,
            env=os.environ | {"COLUMNS": "96", "NO_COLOR": "1"},
        )
    except subprocess.TimeoutExpired:
        lines = (f"stopped after {LONGEST} seconds",)
        return Step(why, command, lines, time.monotonic() - began, None)
    text = done.stdout.replace(str(root), ".")
    return Step(why, command, tuple(told(text)), time.monotonic() - began, done.returncode)


def _last_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()][-3:]


def _all_lines(text: str) -> list[str]:
    lines = (line.rstrip() for line in text.splitlines() if not _OWN_LINE.match(line))
    return [line for line in lines if line]


def _findings(text: str) -> list[str]:
    """The verdict and what was found; not what was cleared or could not be looked at."""
    found = []
    for line in _all_lines(text):
        if _ENDS_DIAGNOSIS.match(line):
            break
        found.append(line)
    return found


def shown(steps: list[Step]) -> str:
    """As a list of commands with their output and their time."""
    lines = ["## The expert's path", ""]
    for number, step in enumerate(steps, 1):
        lines += [f"{number}. {step.why}", "", f"    $ {step.command}   # {step.seconds:.1f} s"]
        lines += [f"    {line}" for line in step.output] + [""]
    lines.append(f"{sum(step.seconds for step in steps):.0f} s of machine time in all.")
    return "\n".join(lines) + "\n"

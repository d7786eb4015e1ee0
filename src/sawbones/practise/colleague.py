"""The report that comes with an exercise: what a colleague would write, with the numbers that the run
printed, and no guess about the cause.
"""

from __future__ import annotations

import math
import random
import re

from sawbones.practise.exercises import Exercise
from sawbones.practise.measuring import Measured

_OPENINGS = (
    "Can you take a look at this?",
    "I am stuck with this one and have to hand it over.",
    "This came back from the nightly job.",
    "We need this by tomorrow, and it does not look right.",
)
_CLOSINGS = (
    "I have not changed the data.",
    "The machine and the versions are the same as before.",
    "I have only looked at the log so far.",
)
_LAST_LINES = 10
_HOOK = re.compile(r"^\S*[/\\]sawbones[/\\]\S+\.py:\d+: ")


def report(exercise: Exercise, broken: Measured, good: Measured) -> str:
    rng = random.Random(f"words {exercise.seed}")
    log = "\n".join(f"    {line}" for line in _plain(broken.log)[-_LAST_LINES:])
    return (
        f"# {rng.choice(_OPENINGS)}\n\n{_complaint(broken, good)} {rng.choice(_CLOSINGS)}\n\n"
        f"What it printed at the end (`python {exercise.broken.file}`):\n\n{log}\n"
    )


def _plain(log: tuple[str, ...]) -> list[str]:
    """Without what only a watched run prints: a warning names the hook that called torch, and quotes
    that hook's line below.
    """
    lines, was_hook = [], False
    for line in log:
        quoted = was_hook and line.startswith("  ")
        shorter = _HOOK.sub("", line)
        was_hook = shorter != line
        if not quoted:
            lines.append(shorter)
    return lines


def _complaint(broken: Measured, good: Measured) -> str:
    before = _last(good)
    if broken.crashed:
        return "It does not run through any more. An earlier version of the script did."
    if any(not math.isfinite(number) for number in broken.last_numbers):
        return f"The numbers turn into nan. An earlier version ended with: {before}"
    if "does-not-learn" in broken.symptoms:
        return f"It runs and learns nothing. An earlier version ended with: {before}"
    if "diverges" in broken.symptoms:
        return f"The loss goes up instead of down. An earlier version ended with: {before}"
    if _last(broken) == before:
        return (
            "The log looks the same as that of an earlier version, and a reviewer still says that "
            "something may be off. Is there?"
        )
    return (
        "It runs, and the numbers are not what they were. An earlier version on the same data "
        f"ended with: {before} I do not know whether that is better, worse, or just noise."
    )


def _last(measured: Measured) -> str:
    line = next((line for line in reversed(measured.log) if line.strip()), "")
    return f"`{line.strip()}`."

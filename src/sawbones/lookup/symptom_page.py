"""The page of a symptom: what it looks like, its causes by how often they were seen, the change that
separates each from the others, and the commands.
"""

from __future__ import annotations

import inspect
import tomllib
from functools import cache
from importlib.resources import files

from sawbones.diagnosis.rivals import BATTERIES, Rival
from sawbones.lookup.curves import sketch
from sawbones.pages import section
from sawbones.schema import faults
from sawbones.symptoms import Watched

MOST_CAUSES = 8


@cache
def seen() -> dict[str, dict[str, int]]:
    """Symptom -> fault -> recorded runs with that fault that showed it."""
    text = files("sawbones.lookup").joinpath("seen.toml").read_text(encoding="utf-8")
    return dict(tomllib.loads(text))


def causes(watched: Watched) -> list[tuple[str, int]]:
    """Most often seen first; then those that a trial of this symptom looks for, and those that the
    symptom itself names.
    """
    counted = seen().get(watched.symptom, {})
    found = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    rivals = [rival.fault for rival in BATTERIES.get(watched.symptom, ()) if rival.is_named]
    named = [cause for cause in watched.causes if cause in faults()]
    others = [fault for fault in dict.fromkeys([*rivals, *named]) if fault not in counted]
    return [*found, *((fault, 0) for fault in others)]


def symptom_page(watched: Watched) -> str:
    title, _, rest = inspect.cleandoc(watched.page).partition("\n")
    written = {part.partition("\n")[0]: f"## {part.strip()}" for part in rest.split("## ")[1:]}
    parts = [
        f"# {watched.symptom}\n\n{title}.",
        sketch(watched.symptom),
        written["What it may mean"],
        written["First commands"],
        _causes(watched),
        _rivals(BATTERIES.get(watched.symptom, ())),
        written["What it measures"],
        written["Null"],
        "## All of it at once\n`sawbones diagnose train.py` measures this symptom, reads every "
        "check, and runs the trials that separate the causes that are left.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _causes(watched: Watched) -> str:
    found = causes(watched)
    patterns = ", ".join(f"`{cause}`" for cause in watched.causes)
    if not found:
        return f"## Causes\nNo recorded script showed it. It can come from {patterns}."
    total = sum(count for _, count in found)
    counted = f"In brackets: how many of the {total} broken scripts that showed it had this fault."
    lines = ["## Causes, most often first", *([counted] if total else []), ""]
    for fault, count in found[:MOST_CAUSES]:
        number = f" ({count})" if count else ""
        lines.append(f"- `{fault}`{number}: {faults()[fault].cause}.")
        looks = section(fault, "Looks like")
        if looks:
            lines.append(f"  Looks like: {looks}")
    others = ", ".join(f"`{fault}`" for fault, _ in found[MOST_CAUSES:])
    rest = [f"Others: {others}."] if others else []
    return "\n".join([*lines, "", *rest, f"Each has its page: `sawbones explain {found[0][0]}`"])


def _rivals(rivals: tuple[Rival, ...]) -> str:
    if not rivals:
        return ""
    lines = ["## Tell them apart\nOne change at a time, from the same seed:", ""]
    for rival in rivals:
        named = f"`{rival.fault}`" if rival.is_named else f"something in the layer {rival.fault}"
        weaker = "" if rival.own else " (weak evidence: this makes many other faults milder too)"
        lines.append(f"- healed by `sawbones try {rival.asked} train.py`: {named}{weaker}")
    return "\n".join(lines)

"""Hints in this program's own names and lines, and the model answer: the path of somebody who knows."""

from __future__ import annotations

import ast

from sawbones.lookup.symptom_page import causes
from sawbones.pages import section
from sawbones.practise.exercises import Exercise
from sawbones.practise.injecting import injectors
from sawbones.practise.measuring import Measured
from sawbones.practise.places import assigned_name, calls, loss_expressions, models, optimizers
from sawbones.schema import fault
from sawbones.scoring.cases import NEAR_LINES
from sawbones.symptoms import all_symptoms

NUM_HINTS = 3
WINDOW = 12  # lines around the place


def hint(exercise: Exercise, number: int) -> str:
    """The first says which layers to clear, the second where to look, the third what to look for."""
    if not exercise.faults:
        return (
            _trial(exercise),
            "Run it twice with one seed, and compare the first loss with that of an even guess.",
            "A script that learns one batch, repeats and begins at an even guess may be healthy.",
        )[number - 1]
    if number == 1:
        layers = sorted({one.partition(".")[0] for one in exercise.faults})
        return f"{_trial(exercise)} What is left after it: {', '.join(layers)}."
    places = _places(exercise)
    if number == 2:
        regions: dict[str, list[str]] = {}
        for line in places:
            regions.setdefault(_region(exercise, line), []).append(_names(exercise, line))
        return " ".join(
            f"Look at {where}; it uses {', and '.join(names)}." for where, names in regions.items()
        )
    lines = ", ".join(map(str, places))
    several = "Lines" if len(places) > 1 else "Line"
    looks = " ".join(section(one, "Looks like") for one in exercise.faults)
    return f"{several} {lines}, or beside it. What it typically looks like: {looks}"


def _places(exercise: Exercise) -> list[int]:
    """The first line of each change that stands apart."""
    lines = sorted(exercise.lines)
    pairs = zip(lines, [-NEAR_LINES, *lines], strict=False)
    return [line for line, before in pairs if line - before > NEAR_LINES]


def _trial(exercise: Exercise) -> str:
    script = exercise.broken.file
    if exercise.faults and all(injectors()[one].level == 1 for one in exercise.faults):
        return f"Read the last frame of the traceback of `python {script}`."
    source = exercise.broken
    model = _stands([(source.text_of(one.targets[0]), one.lineno) for one in models(source)])
    loss = _stands([(_name_in(value), one.lineno) for one, value in loss_expressions(source)])
    made = [(assigned_name(source, call), call.lineno) for call in optimizers(source)]
    loaders = [(assigned_name(source, call), call.lineno) for call in calls(source, "DataLoader")]
    return (
        f"`sawbones try overfit-one-batch {script}` first. One batch that is learned clears the model"
        f"{model}, the loss{loss} and the optimizer{_stands(made)}; one that is not clears the data"
        f"{_stands(loaders[:1])}."
    )


def _name_in(value: ast.expr) -> str:
    """Its first name alone: what is done to it may be the fault."""
    return next((node.id for node in ast.walk(value) if isinstance(node, ast.Name)), "")


def _stands(places: list[tuple[str, int]]) -> str:
    """Behind a word: as the script calls it, and where."""
    name, line = next((place for place in places if place[0]), ("", 0))
    return f" (`{name}`, line {line})" if name else ""


def _region(exercise: Exercise, line: int) -> str:
    source = exercise.broken
    scope: ast.AST = source.tree
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            last = node.end_lineno or node.lineno
            if node.lineno <= line <= last and last - node.lineno <= 4 * WINDOW:
                scope = node
    if isinstance(scope, ast.FunctionDef | ast.ClassDef):
        return f"`{scope.name}` (lines {scope.lineno} to {scope.end_lineno})"
    first = max(1, line - WINDOW // 2 - line % 3)
    return f"lines {first} to {first + WINDOW}"


def _names(exercise: Exercise, line: int) -> str:
    """What stands around the place, as the script calls it."""
    found = [
        node.id
        for node in ast.walk(exercise.broken.tree)
        if isinstance(node, ast.Name) and abs(node.lineno - line) <= 1 and node.id != "self"
    ]
    return ", ".join(f"`{name}`" for name in dict.fromkeys(found[:5])) or "no name of its own"


def model_answer(exercise: Exercise, broken: Measured) -> str:
    """What the path comes to: symptom, rivals, cause with its proof, and the patch."""
    seen = sorted(broken.symptoms)
    if broken.crashed:
        symptom = f"It ends with: {broken.error}"
    elif seen:
        symptom = f"What is wrong to see: {', '.join(seen)} (`sawbones explain {seen[0]}`)."
    else:
        symptom = "No symptom by itself: the numbers have to be compared with a healthy run."
    lines = ["## Model answer", "", symptom]
    watched = [w for w in all_symptoms() if w.symptom in seen]
    rivals = [name for w in watched for name, _ in causes(w) if name not in exercise.faults]
    if rivals:
        named = ", ".join(dict.fromkeys(rivals[:4]))
        lines.append(f"Other causes that look like it and have to be ruled out: {named}.")
    for name in exercise.faults:
        lines += ["", f"### {name}", "", f"{fault(name).cause}.", ""]
        lines.append(f"How it is confirmed: {section(name, 'Confirm it')}")
    if exercise.faults:
        diff = "\n".join(f"    {line}" for line in exercise.fix.splitlines())
        lines += ["", "The fix:", "", diff]
    else:
        lines += ["", "There is no fault. Saying so, with measurements, is the right answer."]
    return "\n".join(lines) + "\n"

"""Hints in this program's own names and lines, and the model answer: the path of somebody who knows."""

from __future__ import annotations

import ast

from sawbones.lookup.symptom_page import causes
from sawbones.pages import section
from sawbones.practise.exercises import Exercise
from sawbones.practise.injecting import injectors
from sawbones.practise.measuring import Measured
from sawbones.schema import fault
from sawbones.symptoms import all_symptoms

NUM_HINTS = 3
WINDOW = 12  # lines around the place


def hint(exercise: Exercise, number: int) -> str:
    """The first says which layers to clear, the second where to look, the third what to look for."""
    if not exercise.faults:
        return (
            "Run it twice with one seed, overfit one batch, and compare the first loss with that "
            "of an even guess. A script that passes all three may be healthy."
        )
    if number == 1:
        layers = sorted({one.partition(".")[0] for one in exercise.faults})
        return f"{_trial(exercise)} What is left after it: {', '.join(layers)}."
    line = min(exercise.lines)
    if number == 2:
        return f"Look at {_region(exercise, line)}; it uses {_names(exercise, line)}."
    looks = "; ".join(section(one, "Looks like").rstrip(".") for one in exercise.faults)
    return f"Line {line} or the ones beside it. It typically looks like this: {looks}."


def _trial(exercise: Exercise) -> str:
    script = exercise.broken.file
    if all(injectors()[one].level == 1 for one in exercise.faults):
        return f"Read the last frame of the traceback of `python {script}`."
    return (
        f"`sawbones try overfit-one-batch {script}` first: one batch that is learned clears model, "
        "loss and optimizer; one that is not clears the data."
    )


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

"""Which patients there are, and in which of their lines the fault lies. Reads files, runs nothing,
needs no torch.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FAULTS = Path(__file__).resolve().parent.parent / "faults"


@dataclass(frozen=True)
class Bed:
    """One patient: the fault, its script, the first line of the script's docstring, and how many
    ranks it needs.
    """

    fault: str
    script: Path
    summary: str
    num_ranks: int = 1  # the script's RANKS
    device: str = "cpu"  # the script's DEVICE: the fault exists there alone
    steps: int = 60  # the script's STEPS: after so many the fault shows


@cache
def beds() -> tuple[Bed, ...]:
    found = []
    for script in sorted(FAULTS.glob("*/*/lab.py")):
        tree = ast.parse(script.read_text(encoding="utf-8"))
        text = ast.get_docstring(tree) or ""
        room = script.parent
        found.append(
            Bed(
                f"{room.parent.name}.{room.name.replace('_', '-')}",
                script,
                text.split("\n")[0],
                int(_constant(tree, "RANKS", 1)),
                str(_constant(tree, "DEVICE", "cpu")),
                int(_constant(tree, "STEPS", 60)),
            )
        )
    return tuple(found)


def _constant(tree: ast.Module, name: str, otherwise: Any) -> Any:
    for node in tree.body:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant):
            continue
        if any(isinstance(target, ast.Name) and target.id == name for target in node.targets):
            return node.value.value
    return otherwise


def truth_lines(script: Path) -> frozenset[int]:
    """Lines in which the broken variant differs from its twin: the innermost statements that ask
    for `patient.broken`.

    An `if` counts with both of its branches, any other statement with all of its lines.
    """
    found: set[int] = set()

    def visit(statement: ast.stmt) -> None:
        inner = [
            node
            for node in ast.walk(statement)
            if isinstance(node, ast.stmt) and node is not statement
        ]
        asked_inside = {id(node) for child in inner for node in ast.walk(child)}
        asks = any(_asks(node) and id(node) not in asked_inside for node in ast.walk(statement))
        if asks and isinstance(statement, ast.If):
            found.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
        elif asks:
            last = inner[0].lineno - 1 if inner else statement.end_lineno or statement.lineno
            found.update(range(statement.lineno, max(statement.lineno, last) + 1))

    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.stmt):
            visit(node)
    return frozenset(found)


def _asks(node: ast.AST) -> bool:
    if not isinstance(node, ast.Attribute) or node.attr != "broken":
        return False
    return isinstance(node.value, ast.Name) and node.value.id == "patient"

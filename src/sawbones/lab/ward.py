"""Which patients there are, and in which of their lines the fault lies. Reads files, runs nothing, needs no torch."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FAULTS = Path(__file__).resolve().parent / "faults"


@dataclass(frozen=True)
class Bed:
    """One patient: the fault, its script, and the first line of the script's docstring."""

    fault: str
    script: Path
    summary: str


@cache
def beds() -> tuple[Bed, ...]:
    found = []
    for script in sorted(FAULTS.glob("*/*.py")):
        if script.stem != "__init__":
            text = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
            found.append(Bed(f"{script.parent.name}.{script.stem.replace('_', '-')}", script, text.split("\n")[0]))
    return tuple(found)


def truth_lines(script: Path) -> frozenset[int]:
    """Lines in which the broken variant differs from its twin: the innermost statements that ask for `patient.broken`.

    An `if` counts with both of its branches, any other statement with all of its lines.
    """
    found: set[int] = set()

    def visit(statement: ast.stmt) -> None:
        inner = [node for node in ast.walk(statement) if isinstance(node, ast.stmt) and node is not statement]
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

"""An activation whose slope does not shrink what passes through it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, rename_attribute
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source

STEEPER = {"Sigmoid": "ReLU", "Tanh": "ReLU", "sigmoid": "relu", "tanh": "relu"}


def fix(case: Case) -> Iterator[Change]:
    for source, site in case.places():
        edits: list[Edit] = []
        for call in source.calls_at(site.line, *STEEPER):
            if isinstance(call.func, ast.Attribute):
                edits.append(rename_attribute(source, call.func, STEEPER[call.func.attr]))
        if edits:
            edits += _others(source, site.line, edits)
            yield Change("Use an activation that passes gradients on: ReLU.", tuple(edits))


def _others(source: Source, line: int, edits: list[Edit]) -> list[Edit]:
    """The same activation elsewhere in the same block."""
    statement = source.statement_at(line)
    block = source.block(statement) if statement is not None else []
    found = []
    for other in block:
        for node in ast.walk(other):
            func = node.func if isinstance(node, ast.Call) else None
            if isinstance(func, ast.Attribute) and func.attr in STEEPER:
                edit = rename_attribute(source, func, STEEPER[func.attr])
                if edit not in edits:
                    found.append(edit)
    return found

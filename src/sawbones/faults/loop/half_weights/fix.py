"""Weights in float32: the casts go."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, remove, rename_attribute
from sawbones.fixing.expressions import calls_near, unwrapped
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source

CASTS = ("half", "bfloat16")
TYPES = ("float16", "bfloat16", "half")


def fix(case: Case) -> Iterator[Change]:
    edits: list[Edit] = []
    for source, call in calls_near(case, *CASTS):
        if isinstance(call.func, ast.Attribute) and not call.args:
            edits.append(_uncast(source, call))
    for source, site in case.places():
        for node in source.nodes_at(site.line):
            if not isinstance(node, ast.Attribute) or node.attr not in TYPES:
                continue
            if not _is_called(source, node) and not _in_autocast(source, node):
                edits.append(rename_attribute(source, node, "float32"))
    for number in (len(edits), 1) if len(edits) > 1 else (len(edits),):
        if number:
            yield Change("Keep the weights in float32.", tuple(dict.fromkeys(edits[:number])))


def _uncast(source: Source, call: ast.Call) -> Edit:
    statement = source.statement(call)
    if isinstance(statement, ast.Expr) and statement.value is call:
        return remove(source, statement)
    return unwrapped(source, call)


def _is_called(source: Source, node: ast.AST) -> bool:
    parent = source.parents[node]
    return isinstance(parent, ast.Call) and parent.func is node


def _in_autocast(source: Source, node: ast.AST) -> bool:
    """The type of an autocast is where half precision belongs."""
    calls = [n for n in source.around(node) if isinstance(n, ast.Call)]
    return any("autocast" in ast.unparse(call.func) for call in calls)

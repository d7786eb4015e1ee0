"""An activation whose slope does not shrink what passes through it; a way around each layer."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, rename_attribute, replace
from sawbones.fixing.names import root_names
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
    for source, site in case.places():
        for node in source.nodes_at(site.line):
            if isinstance(node, ast.Assign):
                yield from _around_layer(source, node)
            elif isinstance(node, (ast.FunctionDef, ast.Return)):
                yield from _around_block(source, node)


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


def _around_layer(source: Source, node: ast.Assign) -> Iterator[Change]:
    """`h = layer(h)` of a loop -> `h = h + layer(h)`."""
    target = node.targets[0]
    in_loop = any(isinstance(outer, ast.For) for outer in source.around(node))
    if not isinstance(target, ast.Name) or not in_loop or not isinstance(node.value, ast.Call):
        return
    if target.id in root_names(node.value):
        yield _added(source, node.value, target.id)


def _around_block(source: Source, node: ast.FunctionDef | ast.Return) -> Iterator[Change]:
    """What a block returns, and what it was given."""
    scope = source.function_of(node) if isinstance(node, ast.Return) else node
    if not isinstance(scope, ast.FunctionDef) or len(scope.args.args) < 2:
        return
    ends = [n for n in ast.walk(scope) if isinstance(n, ast.Return) and n.value is not None]
    if scope.name == "forward" and len(ends) == 1 and ends[0].value is not None:
        yield _added(source, ends[0].value, scope.args.args[1].arg)


def _added(source: Source, value: ast.expr, given: str) -> Change:
    text = f"{given} + {source.text_of(value)}"
    return Change(f"Let gradients pass around the layer: {text}.", (replace(source, value, text),))

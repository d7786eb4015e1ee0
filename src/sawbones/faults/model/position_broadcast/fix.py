"""Positions along the sequence, not along the batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, replace
from sawbones.fixing.names import value_of
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source


def fix(case: Case) -> Iterator[Change]:
    summary = "Take the positions along the sequence."
    for source, site in case.places():
        for node in source.nodes_at(site.line):
            sliced = value_of(source, node) if isinstance(node, ast.Name) else node
            sliced = sliced.body if isinstance(sliced, ast.IfExp) else sliced
            if not isinstance(sliced, ast.Subscript) or not isinstance(sliced.ctx, ast.Load):
                continue
            for edit in _length(source, sliced):
                stop = source.span(sliced)[1]
                turned = Edit(source.file, stop, stop, ".transpose(0, 1)")
                yield Change(summary, (edit, turned))
                yield Change(summary, (edit,))


def _length(source: Source, sliced: ast.Subscript) -> Iterator[Edit]:
    """The size of the first axis becomes that of the second."""
    for node in ast.walk(sliced.slice):
        first: ast.expr | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            first = node.args[0] if node.func.attr == "size" and node.args else None
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
            first = node.slice if node.value.attr == "shape" else None
        if isinstance(first, ast.Constant) and first.value == 0:
            yield replace(source, first, "1")

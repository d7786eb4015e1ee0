"""The mask along the keys, and repeated so that it stays with its example."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name


def fix(case: Case) -> Iterator[Change]:
    for source, site in case.places():
        for node in source.nodes_at(site.line):
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
                yield from _other_axis(source, node, node.slice.elts)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                yield from _call(source, node, node.func)


def _other_axis(source: Source, node: ast.Subscript, parts: list[ast.expr]) -> Iterator[Change]:
    """The last two places of the index change: what ran along the queries runs along the keys."""
    added = [isinstance(p, ast.Constant) and p.value is None for p in parts]
    if not any(added[1:]) or len(parts) < 3 or added[-1] == added[-2]:
        return
    edits = (
        replace(source, parts[-1], source.text_of(parts[-2])),
        replace(source, parts[-2], source.text_of(parts[-1])),
    )
    yield Change("Let the mask run along the keys.", edits)


def _call(source: Source, call: ast.Call, func: ast.Attribute) -> Iterator[Change]:
    name = called_name(call)
    if name == "repeat" and len(call.args) == 3:
        heads = source.text_of(call.args[0])
        text = f"{source.text_of(func.value)}.repeat_interleave({heads}, dim=0)"
        yield Change(
            "Repeat each example's mask for its own heads.", (replace(source, call, text),)
        )
    elif name == "unsqueeze" and len(call.args) == 1:
        axis = {"-1": "-2", "2": "1", "3": "2"}.get(source.text_of(call.args[0]))
        if axis is not None:
            yield Change("Let the mask run along the keys.", (replace(source, call.args[0], axis),))

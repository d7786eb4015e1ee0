"""Validation inputs are not standardised as training inputs are."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, data_sets

LEVEL = 3


def inject(source: Source) -> Iterator[Edits]:
    for node in ast.walk(source.tree):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp)):
            continue
        name, sets = source.text_of(node.targets[0]), data_sets(source)
        raw = source.text_of(node.value.left)
        scaled = isinstance(node.value.op, ast.Div) and raw.startswith((f"({name} -", f"{name} -"))
        if scaled and len(sets) == 2 and isinstance(sets[0].args[0], ast.Subscript):
            rows = source.text_of(sets[0].args[0].slice)
            old = source.text_of(node.value)
            text = old.replace(name, f"{name}[{rows}]")
            yield (replace(source, node, f"{name}[{rows}] = {text}"),)

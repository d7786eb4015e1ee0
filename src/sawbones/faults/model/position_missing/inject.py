"""The positions are not added."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, assigned_name, calls, forwards

LEVEL = 3
TRIAL = "positions"


def inject(source: Source) -> Iterator[Edits]:
    for forward in forwards(source):
        for node in ast.walk(forward):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
                right = node.right.value if isinstance(node.right, ast.Subscript) else node.right
                first = node.left
                looked_up = isinstance(first, ast.Call) and isinstance(right, ast.Attribute)
                if looked_up and any(p in source.text_of(right) for p in _parameters(source)):
                    yield (replace(source, node, source.text_of(first)),)


def _parameters(source: Source) -> list[str]:
    """Attributes that are parameters of their own."""
    made = (assigned_name(source, call) for call in calls(source, "Parameter"))
    return [name for name in made if name]

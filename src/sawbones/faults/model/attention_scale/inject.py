"""Scores are not divided by the root of the head's width."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source, called_name
from sawbones.practise.places import Edits

LEVEL = 4
MAY_LOOK_BETTER = True


def inject(source: Source) -> Iterator[Edits]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            divisor = node.right
            if isinstance(divisor, ast.Call) and called_name(divisor) == "sqrt":
                yield (replace(source, node, source.text_of(node.left)),)

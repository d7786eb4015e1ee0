"""The last, partial accumulation of an epoch is dropped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits

LEVEL = 4
TRIAL = "one-large-batch"


def inject(source: Source) -> Iterator[Edits]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.BoolOp):
            parts = node.test.values
            every = isinstance(parts[0], ast.Compare) and isinstance(parts[0].left, ast.BinOp)
            if every and isinstance(node.test.op, ast.Or) and "len(" in source.text_of(parts[1]):
                yield (replace(source, node.test, source.text_of(parts[0])),)

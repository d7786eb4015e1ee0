"""A deep stack of sigmoids without a way around them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, forwards

LEVEL = 3


def inject(source: Source) -> Iterator[Edits]:
    for forward in forwards(source):
        for loop in ast.walk(forward):
            if not (isinstance(loop, ast.For) and len(loop.body) == 1):
                continue
            step = loop.body[0]
            if isinstance(step, ast.Assign) and isinstance(step.value, ast.BinOp):
                inner = source.text_of(step.value.right)
                if "relu(" in inner:
                    yield (replace(source, step.value, inner.replace("relu(", "sigmoid(")),)

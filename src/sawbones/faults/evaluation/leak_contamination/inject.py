"""Half of the validation rows are trained on as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits

LEVEL = 4
MAY_LOOK_BETTER = True


def inject(source: Source) -> Iterator[Edits]:
    for node in ast.walk(source.tree):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)):
            continue
        last = node.value.elts[-1]
        if not (isinstance(last, ast.Subscript) and isinstance(last.slice, ast.Slice)):
            continue
        start = last.slice.lower
        if isinstance(start, ast.Constant) and isinstance(start.value, int) and start.value > 300:
            yield (replace(source, start, str(start.value - 300)),)

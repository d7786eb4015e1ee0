"""The score counts padding."""

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
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
            kept, mask = node.value.value, node.value.slice
            masks = isinstance(mask, ast.Compare) and isinstance(mask.ops[0], ast.NotEq)
            if masks and isinstance(kept, ast.Compare):
                yield (replace(source, node.value, source.text_of(kept)),)

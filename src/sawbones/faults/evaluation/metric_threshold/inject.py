"""Logits are cut at a half, as if they were probabilities."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, calls, is_in

LEVEL = 4
MAY_LOOK_BETTER = True


def inject(source: Source) -> Iterator[Edits]:
    if not calls(source, "BCEWithLogitsLoss"):
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Compare) and len(node.comparators) == 1:
            cut = node.comparators[0]
            if isinstance(cut, ast.Constant) and cut.value == 0 and is_in(source, node, ast.For):
                yield (replace(source, cut, "0.5"),)

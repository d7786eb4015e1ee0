"""The loss is put into the name of the loss function."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, loss_expressions

LEVEL = 1


def inject(source: Source) -> Iterator[Edits]:
    for statement, start in loss_expressions(source):
        if not isinstance(start, ast.Name):
            continue
        made = [
            node
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Assign)
            and source.text_of(node.targets[0]) == start.id
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Name)
        ]
        if not made:
            continue
        function = source.text_of(made[0].value.func)  # type: ignore[attr-defined]
        scope = source.function_of(statement)
        uses = [
            node for node in ast.walk(scope) if isinstance(node, ast.Name) and node.id == start.id
        ]
        yield tuple(replace(source, node, function) for node in uses)

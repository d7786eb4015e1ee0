"""The graph is cut in front of the head."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.source import Source, called_name
from sawbones.practise.places import Edits, after_value, forwards

LEVEL = 3
_CONSTANT = ("ones", "zeros", "full", "arange", "ones_like", "zeros_like", "eye")


def inject(source: Source) -> Iterator[Edits]:
    for forward in forwards(source):
        for node in forward.body:
            if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
                continue
            # A tuple cannot be detached, and what is made of constants has no graph.
            several = isinstance(node.targets[0], ast.Tuple)
            inside = (n for n in ast.walk(node.value) if isinstance(n, ast.Call))
            if not several and not any(called_name(call) in _CONSTANT for call in inside):
                yield (after_value(source, node.value, ".detach()"),)

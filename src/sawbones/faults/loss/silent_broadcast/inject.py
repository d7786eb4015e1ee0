"""Predictions keep an axis that the targets lack."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source, called_name
from sawbones.practise.places import Edits, calls, forwards, receiver

LEVEL = 3


def inject(source: Source) -> Iterator[Edits]:
    if not calls(source, "MSELoss", "mse_loss"):
        return
    for forward in forwards(source):
        for node in ast.walk(forward):
            if isinstance(node, ast.Call) and called_name(node) == "squeeze":
                yield (replace(source, node, receiver(source, node)),)

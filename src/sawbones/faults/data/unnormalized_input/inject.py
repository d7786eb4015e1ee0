"""The inputs stay on their raw scale."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import remove, replace
from sawbones.fixing.source import Source, called_name
from sawbones.practise.places import Edits, calls, data_sets

LEVEL = 3
TRIAL = "standard-inputs"
LEARNED = ("Linear", "Conv1d", "Conv2d", "LSTM", "GRU")
NORMS = ("BatchNorm1d", "BatchNorm2d", "LayerNorm", "GroupNorm")


def inject(source: Source) -> Iterator[Edits]:
    built = [called_name(call) for call in calls(source, *LEARNED, *NORMS)]
    if any(name in NORMS for name in built[:2]):  # takes the scale away before it does harm
        return
    sets = [source.text_of(call.args[0]).partition("[")[0] for call in data_sets(source)]
    for node in ast.walk(source.tree):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp)):
            continue
        name, value = source.text_of(node.targets[0]), node.value
        if name not in sets or not isinstance(value.op, ast.Div):
            continue
        if isinstance(value.left, ast.Call):  # x.float() / 255
            yield (replace(source, value, source.text_of(value.left)),)
        elif source.text_of(value.left).startswith(f"{name} -") and len(source.block(node)) > 1:
            yield (remove(source, node),)

"""A recurrent layer's pair is taken for its output."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, calls, is_in

LEVEL = 1


def inject(source: Source) -> Iterator[Edits]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            names = [source.text_of(name) for name in node.targets[0].elts]
            recurrent = is_in(source, node, ast.ClassDef) and calls(source, "GRU", "LSTM", "RNN")
            if recurrent and len(names) == 2 and names[1].startswith("_"):
                yield (replace(source, node.targets[0], names[0]),)

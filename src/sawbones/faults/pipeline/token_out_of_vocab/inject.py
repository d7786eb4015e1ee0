"""The table of embeddings is one row short."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, calls, models

LEVEL = 1


def inject(source: Source) -> Iterator[Edits]:
    for made in models(source):
        assert isinstance(made.value, ast.Call)
        size = made.value.args[0] if made.value.args else None
        tabled = calls(source, "Embedding") and isinstance(size, ast.Constant)
        if tabled and isinstance(size, ast.Constant) and isinstance(size.value, int):
            yield (replace(source, size, str(size.value - 1)),)

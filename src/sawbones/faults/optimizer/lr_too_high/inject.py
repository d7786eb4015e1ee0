"""The learning rate is three hundred times too high."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, optimizers

LEVEL = 2
TRIAL = "lr=0.1"


def inject(source: Source) -> Iterator[Edits]:
    for call in optimizers(source):
        rate = keyword_of(call, "lr", 1)
        if isinstance(rate, ast.Constant) and isinstance(rate.value, float):
            yield (replace(source, rate, f"{rate.value * 300:g}"),)

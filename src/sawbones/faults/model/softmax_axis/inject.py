"""The softmax runs over the queries."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, calls, is_in

LEVEL = 3
MAY_LOOK_BETTER = True


def inject(source: Source) -> Iterator[Edits]:
    for call in calls(source, "softmax"):
        axis = keyword_of(call, "dim", 1)
        if axis is not None and source.text_of(axis) == "-1" and is_in(source, call, ast.ClassDef):
            yield (replace(source, axis, "-2"),)

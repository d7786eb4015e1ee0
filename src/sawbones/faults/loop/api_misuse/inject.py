"""The loss is built from scores and labels instead of being called with them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, assigned_name, calls, is_in

LEVEL = 1


def inject(source: Source) -> Iterator[Edits]:
    for call in calls(source, "CrossEntropyLoss", "MSELoss", "BCEWithLogitsLoss"):
        name = assigned_name(source, call)
        for use in calls(source, name) if name else ():
            if len(use.args) == 2 and not call.args and is_in(source, use, ast.For):
                yield (replace(source, use.func, source.text_of(call.func)),)

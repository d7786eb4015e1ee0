"""Heads are put together by a reshape alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source, called_name
from sawbones.practise.places import Edits, calls, receiver

LEVEL = 4
MAY_LOOK_BETTER = True
TRIAL = "causality"


def inject(source: Source) -> Iterator[Edits]:
    for call in calls(source, "reshape"):
        inner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(inner, ast.Call) and called_name(inner) == "transpose":
            yield (replace(source, inner, f"({receiver(source, inner)})"),)

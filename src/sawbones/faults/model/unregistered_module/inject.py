"""Layers stand in a plain list."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, calls

LEVEL = 3


def inject(source: Source) -> Iterator[Edits]:
    for call in calls(source, "ModuleList"):
        if len(call.args) == 1:
            yield (replace(source, call, source.text_of(call.args[0])),)

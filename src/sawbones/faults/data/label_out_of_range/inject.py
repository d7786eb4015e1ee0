"""The labels are counted from one."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, calls, data_sets

LEVEL = 1


def inject(source: Source) -> Iterator[Edits]:
    if not calls(source, "CrossEntropyLoss"):
        return
    sets = data_sets(source)
    if sets and not calls(source, "Embedding"):
        yield tuple(
            replace(source, call.args[1], f"{source.text_of(call.args[1])} + 1") for call in sets
        )

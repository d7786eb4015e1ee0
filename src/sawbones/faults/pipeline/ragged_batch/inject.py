"""Samples of different length reach the loader's own collate function."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, remove_keyword
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, calls

LEVEL = 1


def inject(source: Source) -> Iterator[Edits]:
    edits = [
        remove_keyword(source, call, "collate_fn")
        for call in calls(source, "DataLoader")
        if keyword_of(call, "collate_fn") is not None
    ]
    if edits:
        yield tuple(edits)

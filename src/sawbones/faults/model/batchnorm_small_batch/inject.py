"""Batch normalisation with batches of two."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, calls

LEVEL = 4


def inject(source: Source) -> Iterator[Edits]:
    if not calls(source, "BatchNorm1d"):
        return
    for call in calls(source, "DataLoader"):
        size = keyword_of(call, "batch_size", 1)
        if keyword_of(call, "shuffle") is not None and size is not None:
            yield (replace(source, size, "2"),)

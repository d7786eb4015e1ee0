"""Padding counts in the loss."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, remove_keyword
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, calls

LEVEL = 3
TRIAL = "padding"


def inject(source: Source) -> Iterator[Edits]:
    for call in calls(source, "CrossEntropyLoss", "cross_entropy"):
        if keyword_of(call, "ignore_index") is not None:
            yield (remove_keyword(source, call, "ignore_index"),)

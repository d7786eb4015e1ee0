"""The training set is read in its stored order, which is by class."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, remove_keyword
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, calls

LEVEL = 3
TRIAL = "tiny-set"


def inject(source: Source) -> Iterator[Edits]:
    if not calls(source, "repeat_interleave"):
        return
    for call in calls(source, "DataLoader"):
        if keyword_of(call, "shuffle") is not None:
            yield (remove_keyword(source, call, "shuffle"),)

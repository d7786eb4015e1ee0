"""The schedule steps before the optimizer does."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import before, remove
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, optimizer_steps, scheduler_steps

LEVEL = 2
TRIAL = "constant-lr"


def inject(source: Source) -> Iterator[Edits]:
    stepped, scheduled = optimizer_steps(source), scheduler_steps(source)
    if len(stepped) == len(scheduled) == 1:
        again = source.text_of(scheduled[0])
        yield remove(source, scheduled[0]), before(source, stepped[0], again)

"""A random stream is not seeded."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import remove
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, statements

LEVEL = 3
MAY_LOOK_BETTER = True
TRIAL = "same-seed"


def inject(source: Source) -> Iterator[Edits]:
    for statement in statements(source, "manual_seed"):
        yield (remove(source, statement),)

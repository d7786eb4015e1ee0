"""The gradients are not cleared."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import remove
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, statements

LEVEL = 2
TRIAL = "zero-grad"


def inject(source: Source) -> Iterator[Edits]:
    for statement in statements(source, "zero_grad"):
        yield (remove(source, statement),)

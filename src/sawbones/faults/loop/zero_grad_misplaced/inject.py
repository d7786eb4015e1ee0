"""The gradients are cleared between backward and step."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import before, remove
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, optimizer_steps, statements

LEVEL = 3


def inject(source: Source) -> Iterator[Edits]:
    cleared, stepped = statements(source, "zero_grad"), optimizer_steps(source)
    if len(cleared) == len(stepped) == 1 and statements(source, "backward"):
        again = source.text_of(cleared[0])
        yield remove(source, cleared[0]), before(source, stepped[0], again)

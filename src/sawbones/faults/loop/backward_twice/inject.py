"""The backward pass is run a second time through the same graph."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import after
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, loss_expressions

LEVEL = 1


def inject(source: Source) -> Iterator[Edits]:
    for statement, _ in loss_expressions(source):
        yield (after(source, statement, source.text_of(statement)),)

"""The optimizer's step is named and not called."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, call_of, optimizer_steps

LEVEL = 2


def inject(source: Source) -> Iterator[Edits]:
    for statement in optimizer_steps(source):
        yield (replace(source, statement.value, source.text_of(call_of(statement).func)),)

"""One value of the training data is missing, as NaN."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import before
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, trained_rows

LEVEL = 2


def inject(source: Source) -> Iterator[Edits]:
    for statement, name, rows in trained_rows(source):
        place = f'{name}[{rows}[len({rows}) // 3]].view(-1)[2] = float("nan")'
        yield (before(source, statement, place),)

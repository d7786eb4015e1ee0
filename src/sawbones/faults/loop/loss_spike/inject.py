"""One row of the training data is three thousand times too large."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import before
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, trained_rows

LEVEL = 4


def inject(source: Source) -> Iterator[Edits]:
    for statement, name, rows in trained_rows(source):
        yield (before(source, statement, f"{name}[{rows}[len({rows}) // 3]] *= 3000"),)

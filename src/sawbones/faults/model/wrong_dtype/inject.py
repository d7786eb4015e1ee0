"""The inputs are in double precision, the weights are not."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, calls, data_sets

LEVEL = 1


def inject(source: Source) -> Iterator[Edits]:
    for call in data_sets(source)[:1]:
        rows = call.args[0]
        if source.text_of(call.args[1]) != source.text_of(rows) and _is_float(source):
            yield (replace(source, rows, f"{source.text_of(rows)}.double()"),)


def _is_float(source: Source) -> bool:
    """Inputs that are looked up in a table are whole numbers: there the error is another one."""
    return not calls(source, "Embedding")

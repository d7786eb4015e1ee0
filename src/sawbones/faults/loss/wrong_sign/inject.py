"""The backward pass starts from the negative of the loss."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import Edit
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, loss_expressions

LEVEL = 2


def inject(source: Source) -> Iterator[Edits]:
    for _, start in loss_expressions(source):
        text = source.text_of(start)
        begin, stop = source.span(start)
        inside = source.utf8[begin - 1 : begin] == b"("
        yield (Edit(source.file, begin, stop, f"-{text}" if inside else f"(-{text})"),)

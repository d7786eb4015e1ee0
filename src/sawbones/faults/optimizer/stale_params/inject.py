"""The model is built again after the optimizer has taken its parameters."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import after
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, models, optimizers

LEVEL = 3


def inject(source: Source) -> Iterator[Edits]:
    for made in models(source):
        name = source.text_of(made.targets[0])
        for call in optimizers(source):
            statement = source.statement(call)
            if f"{name}.parameters" in source.text_of(call) and statement in source.block(made):
                yield (after(source, statement, source.text_of(made)),)

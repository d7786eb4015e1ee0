"""The optimizer's eps or momentum is far from anything usual."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import set_keyword
from sawbones.fixing.source import Source, called_name
from sawbones.practise.places import Edits, optimizers

LEVEL = 4
TRIAL = "default-moments"


def inject(source: Source) -> Iterator[Edits]:
    for call in optimizers(source):
        if called_name(call) == "SGD":
            yield (set_keyword(source, call, "momentum", "0.999"),)
        elif called_name(call) in ("Adam", "AdamW"):
            yield (set_keyword(source, call, "eps", "10.0"),)

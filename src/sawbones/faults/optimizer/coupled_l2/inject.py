"""L2 goes through Adam's gradient where decoupled decay is meant."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, replace
from sawbones.fixing.source import Source, called_name
from sawbones.practise.places import Edits, optimizers

LEVEL = 4
TRIAL = "no-decay"


def inject(source: Source) -> Iterator[Edits]:
    for call in optimizers(source):
        decay = keyword_of(call, "weight_decay")
        if called_name(call) == "AdamW" and decay is not None:
            func = source.text_of(call.func).replace("AdamW", "Adam")
            yield replace(source, call.func, func), replace(source, decay, "0.2")

"""The loss is summed over the batch."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import set_keyword
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, calls

LEVEL = 3


def inject(source: Source) -> Iterator[Edits]:
    if calls(source, "clip_grad_norm_"):  # clipping takes the scale away again: nothing is ill
        return
    for call in calls(source, "CrossEntropyLoss", "MSELoss", "BCEWithLogitsLoss", "cross_entropy"):
        yield (set_keyword(source, call, "reduction", '"sum"'),)

"""The loss is summed over the batch, where that does harm.

Clipping and adaptive optimizers take the scale of the gradient away again. What is left for them is a
sum over classes, which nobody means; but with accumulation its scale is not to be read off.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import set_keyword
from sawbones.fixing.source import Source, called_name
from sawbones.practise.places import Edits, calls, clips, optimizers, receiver

LEVEL = 3
TRIAL = "lr=0.1"
OVER_CLASSES = ("CrossEntropyLoss", "cross_entropy")


def inject(source: Source) -> Iterator[Edits]:
    plain = all(called_name(call) == "SGD" for call in optimizers(source))
    accumulates = any("/" in receiver(source, call) for call in calls(source, "backward"))
    if clips(source) or (accumulates and not plain):
        return
    losses = (*OVER_CLASSES, "MSELoss", "BCEWithLogitsLoss") if plain else OVER_CLASSES
    for call in calls(source, *losses):
        yield (set_keyword(source, call, "reduction", '"sum"'),)

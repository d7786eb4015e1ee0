"""All weights begin with one and the same value."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import after
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, models

LEVEL = 3
TRIAL = "default-init"


def inject(source: Source) -> Iterator[Edits]:
    for made in models(source):
        name = source.text_of(made.targets[0])
        text = f"for weights in {name}.parameters():\n    torch.nn.init.constant_(weights, 0.05)"
        yield (after(source, made, text),)

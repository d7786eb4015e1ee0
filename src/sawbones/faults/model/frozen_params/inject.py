"""A part of the model does not require gradients: one that the rest cannot make up for."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import after
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, models, modules, trunks

LEVEL = 3


def inject(source: Source) -> Iterator[Edits]:
    for made in models(source):
        name = source.text_of(made.targets[0])
        for owner in modules(source):
            for part in trunks(owner):
                yield (after(source, made, f"{name}.{part}.requires_grad_(False)"),)

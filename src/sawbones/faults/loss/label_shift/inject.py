"""Targets are the inputs themselves, not the next tokens."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, data_sets

LEVEL = 3
MAY_LOOK_BETTER = True
TRIAL = "label-shift"


def inject(source: Source) -> Iterator[Edits]:
    edits = []
    for call in data_sets(source):
        inputs, targets = (source.text_of(arg) for arg in call.args)
        if inputs != targets and targets.replace(" 1:]", " :-1]") == inputs:
            edits.append(replace(source, call.args[1], inputs))
    if edits:
        yield tuple(edits)

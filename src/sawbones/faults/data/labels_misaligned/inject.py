"""Inputs and labels are shuffled by two different orders."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, data_sets

LEVEL = 3
TRIAL = "shuffled-labels"


def inject(source: Source) -> Iterator[Edits]:
    for call in data_sets(source)[:1]:
        labels = source.text_of(call.args[1])
        if source.text_of(call.args[0]).partition("[")[0] != labels.partition("[")[0]:
            text = f"{labels}[torch.randperm(len({labels}))]"
            yield (replace(source, call.args[1], text),)

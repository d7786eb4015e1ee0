"""A loss that wants log-probabilities is given scores."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, calls

LEVEL = 3
MAY_LOOK_BETTER = True


def inject(source: Source) -> Iterator[Edits]:
    for call in calls(source, "CrossEntropyLoss"):
        yield (
            replace(source, call.func, source.text_of(call.func).replace("CrossEntropy", "NLL")),
        )

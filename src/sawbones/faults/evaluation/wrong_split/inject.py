"""The validation loader reads the training set."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, calls

LEVEL = 4
MAY_LOOK_BETTER = True


def inject(source: Source) -> Iterator[Edits]:
    loaders = [call for call in calls(source, "DataLoader") if call.args]
    training = [call for call in loaders if keyword_of(call, "shuffle") is not None]
    for call in loaders:
        if training and call not in training:
            yield (replace(source, call.args[0], source.text_of(training[0].args[0])),)

"""The head is built for another width than it is given."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, assigned_name, calls

LEVEL = 1


def inject(source: Source) -> Iterator[Edits]:
    for call in calls(source, "Linear"):
        if assigned_name(source, call).startswith("self.") and len(call.args) == 2:
            wider = f"{source.text_of(call.args[0])} + 1"
            yield (replace(source, call.args[0], wider),)

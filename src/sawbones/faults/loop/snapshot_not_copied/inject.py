"""The best weights are kept without a copy."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, calls, is_in

LEVEL = 3


def inject(source: Source) -> Iterator[Edits]:
    for call in calls(source, "deepcopy"):
        kept = call.args and "state_dict" in source.text_of(call.args[0])
        if kept and is_in(source, call, ast.For):
            yield (replace(source, call, source.text_of(call.args[0])),)

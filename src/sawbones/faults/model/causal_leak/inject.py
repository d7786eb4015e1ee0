"""The mask leaves one token of the future open."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, calls

LEVEL = 3
MAY_LOOK_BETTER = True
TRIAL = "causality"


def inject(source: Source) -> Iterator[Edits]:
    for call in calls(source, "triu"):
        if (
            len(call.args) == 1
            and isinstance(call.args[0], ast.Constant)
            and call.args[0].value == 1
        ):
            yield (replace(source, call.args[0], "2"),)

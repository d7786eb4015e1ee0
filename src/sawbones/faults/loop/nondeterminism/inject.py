"""The seed is set, and the order of the samples is drawn from a stream that it does not reach."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import before, keyword_of, set_keyword
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, calls, statements

LEVEL = 3
MAY_LOOK_BETTER = True
TRIAL = "same-seed"
REPEATS = False
_NAMES = ("shuffler", "draws", "row_stream")


def inject(source: Source) -> Iterator[Edits]:
    if not statements(source, "manual_seed"):
        return  # a script that sets no seed does not promise to repeat
    used = {node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name)}
    name = next((name for name in _NAMES if name not in used), "")
    for call in calls(source, "DataLoader"):
        shuffle = keyword_of(call, "shuffle")
        shuffled = isinstance(shuffle, ast.Constant) and shuffle.value is True
        if name and shuffled and keyword_of(call, "generator") is None:
            lines = f"{name} = torch.Generator()\n{name}.seed()"
            yield (
                before(source, source.statement(call), lines),
                set_keyword(source, call, "generator", name),
            )

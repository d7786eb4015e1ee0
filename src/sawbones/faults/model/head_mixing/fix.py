"""Split the width first and change places then; before joining, change places back."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, replace
from sawbones.fixing.expressions import calls_near
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source


def fix(case: Case) -> Iterator[Change]:
    for source, call in calls_near(case, "view", "reshape"):
        if not isinstance(call.func, ast.Attribute) or call.keywords:
            continue
        if len(call.args) == 4:
            yield _split(source, call, call.func)
        elif len(call.args) in (2, 3):
            yield _joined(source, call, call.func)


def _split(source: Source, call: ast.Call, func: ast.Attribute) -> Change:
    one, two = call.args[1], call.args[2]
    stop = source.span(call)[1]
    return Change(
        "Split the width into heads first, then let heads and positions change places.",
        (
            replace(source, one, source.text_of(two)),
            replace(source, two, source.text_of(one)),
            Edit(source.file, stop, stop, ".transpose(1, 2)"),
        ),
    )


def _joined(source: Source, call: ast.Call, func: ast.Attribute) -> Change:
    start, stop = source.span(func.value)[1], source.span(func)[1]
    # A view of what has changed places is refused by torch.
    return Change(
        "Let heads and positions change places back before they are joined.",
        (Edit(source.file, start, stop, ".transpose(1, 2).reshape"),),
    )

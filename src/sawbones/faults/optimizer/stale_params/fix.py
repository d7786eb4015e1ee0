"""Build the optimizer once the model has its final modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import after
from sawbones.fixing.moves import move
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    if len(case.finding.where) < 2:
        return
    made, changed = (case.statement(site) for site in case.finding.where[:2])
    if made is None or changed is None or made[0] is not changed[0]:
        return
    source, making = made
    later = changed[1]
    if not isinstance(making, ast.Assign) or later.lineno < making.lineno:
        return
    block = source.block(making)
    if later in block:
        yield Change(
            "Build the optimizer after the model has its final modules.",
            move(source, making, later, behind=True),
        )
    elif making.lineno == making.end_lineno:
        yield Change(
            "Build the optimizer anew where the model changes.",
            (after(source, later, source.text_of(making)),),
        )

"""Clear the gradients once per step, right behind it."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import after, remove
from sawbones.fixing.moves import move
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    optimizer = case.optimizer()
    place = case.statement(case.site)
    if optimizer is None or place is None:
        return
    source, clearing = place
    summary = "Clear the gradients once per step, right behind it."
    together = source is optimizer.source and (
        source.function_of(clearing) is source.function_of(optimizer.call)
    )
    if together:
        yield Change(summary, move(source, clearing, optimizer.statement, behind=True))
    line = f"{optimizer.text}.zero_grad()"
    added = after(optimizer.source, optimizer.statement, line)
    yield Change(summary, (remove(source, clearing), added))

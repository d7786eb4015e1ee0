"""Move the scheduler once per optimizer step, behind it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.moves import LOOPS, covers, move
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    optimizer = case.optimizer()
    place = case.statement(case.site)
    if optimizer is None or place is None:
        return
    source, moving = place
    summary = "Move the scheduler behind the step of the optimizer."
    beside = source is optimizer.source
    if beside and source.function_of(moving) is source.function_of(optimizer.call):
        block = source.block(moving)
        holder = next((s for s in block if covers(s, optimizer.call.lineno)), None)
        per_batch = holder is None or holder is optimizer.statement or isinstance(holder, ast.If)
        if per_batch:
            yield Change(summary, move(source, moving, optimizer.statement, behind=True))
            return
    # Once per epoch, at its beginning: at its end.
    owner = source.parents[moving]
    block = source.block(moving)
    if isinstance(owner, LOOPS) and moving is not block[-1]:
        yield Change(summary, move(source, moving, block[-1], behind=True))

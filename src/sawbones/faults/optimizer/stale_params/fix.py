"""Build the optimizer once the model has its final modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import takewhile

from sawbones.fixing.editing import after
from sawbones.fixing.moves import LOOPS, move, runs_within
from sawbones.fixing.names import binds, root_names
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source
from sawbones.schema import Site


def fix(case: Case) -> Iterator[Change]:
    if len(case.finding.where) < 2:
        return
    site = case.finding.where[1]
    source, making = case.statement(case.finding.where[0]) or (None, None)
    if source is None or not isinstance(making, ast.Assign):
        return
    block = source.block(making)
    rest = block[block.index(making) + 1 :]
    for later in _changing(source, making, rest, site):
        between = rest[: rest.index(later)]
        own = {ast.unparse(target) for target in making.targets}
        if not any(_mentions(statement, own) for statement in [*between, later]):
            yield Change(
                "Build the optimizer after the model has its final modules.",
                move(source, making, later, behind=True),
            )
        elif not root_names(later) & binds([making, *between]):
            yield Change(
                "Give the model its final modules before the optimizer is built.",
                move(source, later, making, behind=False),
            )
    changed = case.statement(site)
    if changed is not None and changed[0] is source and making.lineno == making.end_lineno:
        later = changed[1]
        apart = source.function_of(later) is not source.function_of(making)
        if (apart or later.lineno > making.lineno) and later not in block:
            yield Change(
                "Build the optimizer anew where the model changes.",
                (after(source, later, source.text_of(making)),),
            )


def _changing(
    source: Source, making: ast.Assign, rest: list[ast.stmt], site: Site
) -> Iterator[ast.stmt]:
    """Statements behind the optimizer that change the model: by the place that was seen, else the
    last one before the training that works on what the optimizer was given.
    """
    seen = [s for s in rest if runs_within(source, s, site)]
    if seen:
        yield seen[-1]
        return
    call = making.value
    given = (
        {n for arg in call.args for n in root_names(arg)} if isinstance(call, ast.Call) else set()
    )
    before_training = takewhile(lambda s: not isinstance(s, LOOPS), rest)
    near = [s for s in before_training if root_names(s) & given]
    yield from reversed(near)


def _mentions(statement: ast.stmt, names: set[str]) -> bool:
    return any(isinstance(n, ast.expr) and ast.unparse(n) in names for n in ast.walk(statement))

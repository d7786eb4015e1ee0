"""Step once the gradients are there: call the `step` that stands there uncalled, or add the call
behind backward.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, after
from sawbones.fixing.names import means_the_same
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source


def fix(case: Case) -> Iterator[Change]:
    yield from _uncalled(case)
    backward = next((e for e in case.run.of_kind("backward") if e.phase == "train"), None)
    place = case.statement(backward.site) if backward is not None else None
    if place is None:
        return
    source, statement = place
    stepping = {e.data.get("optimizer") for e in case.run.of_kind("step")}
    for optimizer in case.run.optimizers:
        if optimizer.index in stepping:
            continue
        for name in _names(case, source, optimizer.index):
            if means_the_same(source, name, statement):
                line = f"{source.text_of(name)}.step()"
                yield Change(f"Step behind backward(): {line}.", (after(source, statement, line),))
                return


def _uncalled(case: Case) -> Iterator[Change]:
    for source, site in case.places():
        statement = source.statement_at(site.line)
        value = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(value, ast.Attribute) and value.attr == "step":
            stop = source.span(value)[1]
            call = f"{source.text_of(value)}()"
            yield Change(f"Call it: {call}.", (Edit(source.file, stop, stop, "()"),))


def _names(case: Case, source: Source, index: int) -> Iterator[ast.expr]:
    """The optimizer where its gradients are cleared, or where it is made."""
    for event in case.run.of_kind("zero_grad"):
        if event.data.get("optimizer") == index and event.site is not None:
            if case.source(event.site) is not source:
                continue
            for call in source.calls_at(event.site.line, "zero_grad"):
                if isinstance(call.func, ast.Attribute):
                    yield call.func.value
    made = case.made_optimizer(index)
    if made is not None and made[0] is source:
        statement = source.statement(made[1])
        if isinstance(statement, ast.Assign) and statement.value is made[1]:
            yield from statement.targets

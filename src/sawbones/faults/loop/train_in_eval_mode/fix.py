"""Back into training mode before training goes on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import before
from sawbones.fixing.loop_parts import model_at
from sawbones.fixing.moves import loop_around
from sawbones.fixing.names import means_the_same, receiver
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source
from sawbones.schema import Event


def fix(case: Case) -> Iterator[Change]:
    for event in case.run.of_kind("forward"):
        if event.phase != "train" or event.site not in case.finding.where:
            continue
        place = case.statement(event.site)
        if place is None:
            continue
        source, statement = place
        name = _model(case, source, statement, event)
        if name is None:
            continue
        line = f"{name}.train()"
        summary = f"Go back into training mode before training: {line}."
        loop = loop_around(source, statement)
        evaluated = {e.site.line for e in case.run.of_kind("mode") if e.site is not None}
        if loop is not None and not any(
            loop.lineno <= n <= (loop.end_lineno or 0) for n in evaluated
        ):
            yield Change(summary, (before(source, loop, line),))
        yield Change(summary, (before(source, statement, line),))
        return


def _model(case: Case, source: Source, there: ast.stmt, event: Event) -> str | None:
    """As it is written where its mode was set, or where it is called."""
    for mode in case.run.of_kind("mode"):
        if case.source(mode.site) is not source or mode.site is None:
            continue
        for call in source.calls_at(mode.site.line, "eval", "train"):
            name = receiver(call)
            if name is not None and means_the_same(source, name, there):
                return source.text_of(name)
    called = model_at(source, event)
    return source.text_of(called) if called is not None else None

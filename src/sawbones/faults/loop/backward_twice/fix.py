"""Cut the graph where it is carried over; keep it where two losses share it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.crashes import died_at, written_as
from sawbones.fixing.editing import replace, set_keyword
from sawbones.fixing.expressions import in_brackets
from sawbones.fixing.moves import loop_around
from sawbones.fixing.names import root_names
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source


def fix(case: Case) -> Iterator[Change]:
    found = died_at(case)
    if found is None or not case.finding.where:
        return
    source, line = found
    lines = [site.line for _, site in case.places()]
    made = source.statement_at(lines[0]) if lines else None
    if isinstance(made, ast.Assign) and len(lines) == 2:
        yield from _carried(source, made, line)
    elif len(lines) == 3:
        yield from _shared(case, source, lines[0], lines[1], line)


def _carried(source: Source, made: ast.Assign, line: int) -> Iterator[Change]:
    """What the loop takes over from its last pass is taken over without its graph."""
    inner = source.statement_at(line)
    if inner is None or loop_around(source, made) is not loop_around(source, inner):
        return
    value = made.value
    for part in value.elts if isinstance(value, ast.Tuple) else [value]:
        if isinstance(part, ast.IfExp):
            part = part.body
        text = f"{in_brackets(source, part)}.detach()"
        yield Change(f"Take it over without its graph: {text}.", (replace(source, part, text),))


def _shared(case: Case, source: Source, made: int, first: int, second: int) -> Iterator[Change]:
    """Two losses of one value. Where an optimizer steps in between, the first loss trains its own
    model alone; where none does, both are to train what made the value.
    """
    value = source.statement_at(made)
    targets = value.targets if isinstance(value, ast.Assign) else []
    names = [t.id for t in targets if isinstance(t, ast.Name)]
    steps = {e.site.line for e in case.run.of_kind("step") if e.site is not None}
    if any(first < line < second for line in steps):
        for line in range(made + 1, first + 1):
            for name in names:
                for node in written_as(source, line, name):
                    yield Change(
                        f"Keep the first loss from training what made it: {name}.detach().",
                        (replace(source, node, f"{name}.detach()"),),
                    )
    for call in source.calls_at(first, "backward"):
        if root_names(call):
            yield Change(
                "Keep the graph for the second loss: retain_graph=True.",
                (set_keyword(source, call, "retain_graph", "True"),),
            )

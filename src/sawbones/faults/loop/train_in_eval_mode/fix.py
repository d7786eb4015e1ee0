"""Back into training mode before training goes on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import before
from sawbones.fixing.loop_parts import backward_calls, loss_of, model_name
from sawbones.fixing.moves import loop_around, runs_within
from sawbones.fixing.names import value_of
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source


def fix(case: Case) -> Iterator[Change]:
    forwards = case.run.of_kind("forward")
    evaluated = {e.site for e in forwards if e.phase != "train"}
    trained = dict.fromkeys(e.site for e in forwards if e.phase == "train")
    for site in trained:
        place = case.statement(site) if site in case.finding.where else None
        if place is None:
            continue
        # A function that evaluation calls as well is no place to set a mode.
        there = place if site not in evaluated else _takes_the_loss(case)
        if there is not None:
            yield from _before(case, *there)
        return


def _before(case: Case, source: Source, statement: ast.stmt) -> Iterator[Change]:
    name = model_name(case, source, statement)
    if name is None:
        return
    line = f"{name}.train()"
    summary = f"Go back into training mode before training: {line}."
    loop = loop_around(source, statement)
    modes = [e.site for e in case.run.of_kind("mode") if e.site is not None]
    if loop is not None and not any(runs_within(source, loop, site) for site in modes):
        yield Change(summary, (before(source, loop, line),))
    yield Change(summary, (before(source, statement, line),))


def _takes_the_loss(case: Case) -> tuple[Source, ast.stmt] | None:
    """The statement of the training loop that computes what goes backward."""
    for source, call in backward_calls(case):
        loss = loss_of(call)
        made = value_of(source, loss) if loss is not None else None
        if made is not None:
            return source, source.statement(made)
    return None

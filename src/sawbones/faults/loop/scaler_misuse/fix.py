"""Scale, step and update through the scaler."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import after, replace
from sawbones.fixing.loop_parts import backward_calls, loss_of
from sawbones.fixing.recipes import Case, Change, Use


def fix(case: Case) -> Iterator[Change]:
    scaler = case.scaler()
    if scaler is None:
        return
    if not case.run.of_kind("scaler_step"):
        yield from _step_through(case, scaler)
    elif not case.run.of_kind("scale"):
        yield from _scale(case, scaler)
    elif not case.run.of_kind("scaler_update"):
        line = f"{scaler.text}.update()"
        yield Change(
            f"Update the scale once per step: {line}.",
            (after(scaler.source, scaler.statement, line),),
        )


def _step_through(case: Case, scaler: Use) -> Iterator[Change]:
    optimizer = case.optimizer()
    if optimizer is None or optimizer.source is not scaler.source:
        return
    if not scaler.reaches(optimizer.call):
        return
    source = optimizer.source
    handed: list[ast.expr | ast.keyword] = [*optimizer.call.args, *optimizer.call.keywords]
    given = [source.text_of(argument) for argument in handed]
    step = f"{scaler.text}.step({', '.join([optimizer.text, *given])})"
    edits = [replace(source, optimizer.call, step)]
    if not case.run.of_kind("scaler_update"):
        edits.append(after(source, optimizer.statement, f"{scaler.text}.update()"))
    yield Change(f"Step through the scaler: {step}.", tuple(edits))


def _scale(case: Case, scaler: Use) -> Iterator[Change]:
    for source, call in backward_calls(case):
        loss = loss_of(call)
        if loss is not None and source is scaler.source and scaler.reaches(call):
            scaled = f"{scaler.text}.scale({source.text_of(loss)})"
            yield Change(
                f"Go backward from the scaled loss: {scaled}.", (replace(source, loss, scaled),)
            )
            return

"""Scale, step and update through one scaler, each once per step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, above, after, remove, replace
from sawbones.fixing.loop_parts import backward_calls, loss_of
from sawbones.fixing.moves import LOOPS, move
from sawbones.fixing.names import bound_in, method_calls, receiver, root_names
from sawbones.fixing.recipes import Case, Change, Use
from sawbones.fixing.source import Source, called_name


def fix(case: Case) -> Iterator[Change]:
    yield from _made_once(case)
    scaler = case.scaler()
    if scaler is None:
        return
    yield from _step_through(case, scaler)
    if not case.run.of_kind("scale"):
        yield from _scale(case, scaler)
    yield from _unscaled_once(case)
    yield from _updated(case, scaler)


def _made_once(case: Case) -> Iterator[Change]:
    """A scaler that is made at every step forgets its scale: it is made where the loop begins."""
    summary = "Make the scaler once, so that it keeps its scale."
    for source, call in case.calls("GradScaler"):
        making = source.statement(call)
        if not isinstance(making, ast.Assign) or making.value is not call:
            continue
        loops = []
        for outer in source.around(making):
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
                break
            loops += [outer] if isinstance(outer, LOOPS) else []
        if loops:
            yield Change(summary, move(source, making, loops[-1], behind=False))
            continue
        function = source.function_of(making)
        if isinstance(function, ast.FunctionDef) and isinstance(making.targets[0], ast.Name):
            edits = _held(source, making, function)
            yield from [Change(summary, edits)] if edits else []


def _held(source: Source, making: ast.Assign, function: ast.FunctionDef) -> tuple[Edit, ...]:
    """In the object whose method makes it, else at the top of the file."""
    name, text = source.text_of(making.targets[0]), source.text_of(making)
    own = source.parents[function]
    begins = [
        n
        for n in (own.body if isinstance(own, ast.ClassDef) else [])
        if isinstance(n, ast.FunctionDef) and n.name == "__init__"
    ]
    if root_names(making.value) & bound_in(function):
        return ()
    if not begins:
        return remove(source, making), above(source, source.outermost(function), text)
    uses = [
        replace(source, node, f"self.{name}")
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]
    first = after(source, begins[0].body[-1], f"self.{text}")
    return remove(source, making), first, *uses


def _step_through(case: Case, scaler: Use) -> Iterator[Change]:
    """The step that goes past the scaler: the one of the finding, or the only one that there is."""
    through = {e.site for e in case.run.of_kind("scaler_step")}
    for step in dict.fromkeys(e.site for e in case.run.of_kind("step")):
        source = case.source(step)
        if step is None or step in through or source is not scaler.source:
            continue
        for call in method_calls(source, step.line, "step"):
            optimizer = receiver(call)
            if optimizer is None or not scaler.reaches(call):
                continue
            handed: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
            given = [source.text_of(node) for node in (optimizer, *handed)]
            text = f"{scaler.text}.step({', '.join(given)})"
            edits = [replace(source, call, text)]
            if not case.run.of_kind("scaler_update"):
                edits.append(after(source, source.statement(call), f"{scaler.text}.update()"))
            yield Change(f"Step through the scaler: {text}.", tuple(edits))


def _unscaled_once(case: Case) -> Iterator[Change]:
    """Of two calls one goes, first that in the inner block, which is not always reached."""
    if "unscale_()" not in (case.run.ending.message or ""):
        return
    for source in {s.file: s for s, _ in case.places()}.values():
        calls = [n for n in ast.walk(source.tree) if isinstance(n, ast.Call)]
        found = [source.statement(c) for c in calls if called_name(c) == "unscale_"]
        found.sort(key=lambda s: -len(source.indent_of(s)))
        for statement in found if len(found) > 1 else []:
            yield Change("Unscale once per step.", (remove(source, statement),))


def _updated(case: Case, scaler: Use) -> Iterator[Change]:
    line = f"{scaler.text}.update()"
    summary = f"Update the scale once per step: {line}."
    elsewhere = [
        n
        for n in ast.walk(scaler.source.tree)
        if isinstance(n, ast.Expr) and scaler.source.text_of(n) == line
    ]
    stepping = case.use("scaler_step", "step")
    if stepping is None or stepping.source is not scaler.source:
        return
    if not elsewhere:
        yield Change(summary, (after(stepping.source, stepping.statement, line),))
    elif len(elsewhere) == 1 and "update()" in (case.run.ending.message or ""):
        moved = move(stepping.source, elsewhere[0], stepping.statement, behind=True)
        yield Change(summary, moved)


def _scale(case: Case, scaler: Use) -> Iterator[Change]:
    for source, call in backward_calls(case):
        loss = loss_of(call)
        if loss is not None and source is scaler.source and scaler.reaches(call):
            scaled = f"{scaler.text}.scale({source.text_of(loss)})"
            yield Change(
                f"Go backward from the scaled loss: {scaled}.", (replace(source, loss, scaled),)
            )
            return

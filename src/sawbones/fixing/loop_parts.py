"""Parts of a training loop as the user writes them: parameters, losses, models."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from sawbones.fixing.names import (
    bound_in,
    full_name,
    is_simple,
    means_the_same,
    only_call,
    receiver,
    target_of,
)
from sawbones.fixing.recipes import Case, Use
from sawbones.fixing.source import Source


def parameters_text(case: Case, optimizer: Use) -> str:
    """What the optimizer holds, to be written at its step: as it was made, where that means the
    same there, else out of its groups.
    """
    step = next((e for e in case.run.of_kind("step")), None)
    index = int(step.data.get("optimizer", 0)) if step is not None else 0
    made = case.made_optimizer(index)
    if made is not None and made[0] is optimizer.source and made[1].args:
        first = made[1].args[0]
        plain = isinstance(first, ast.Call) and not first.args and not first.keywords
        func = first.func if isinstance(first, ast.Call) else None
        named = isinstance(func, ast.Attribute) and func.attr == "parameters"
        if plain and named and isinstance(func, ast.Attribute):
            holder = func.value
            if means_the_same(optimizer.source, holder, optimizer.call):
                return optimizer.source.text_of(first)
    return f'(p for group in {optimizer.text}.param_groups for p in group["params"])'


def loss_of(call: ast.Call) -> ast.expr | None:
    """Of `loss.backward()` or `accelerator.backward(loss)`, the loss; through a scaler."""
    found = call.args[0] if call.args else None
    if found is None and isinstance(call.func, ast.Attribute):
        found = call.func.value
    while (
        isinstance(found, ast.Call)
        and isinstance(found.func, ast.Attribute)
        and found.func.attr == "scale"
        and len(found.args) == 1
    ):
        found = found.args[0]
    return found


def backward_calls(case: Case) -> list[tuple[Source, ast.Call]]:
    """The backward passes of training, each line once."""
    found = []
    sites = dict.fromkeys(e.site for e in case.run.of_kind("backward") if e.phase == "train")
    for site in sites:
        source = case.source(site)
        if source is None or site is None:
            continue
        calls = source.calls_at(site.line, "backward", "manual_backward")
        found += [(source, calls[0])] if calls else []
    return found


def model_name(case: Case, source: Source, there: ast.AST) -> str | None:
    """What the model is called at a place of this file, read off where it was built, called, or
    set to a mode.
    """
    for node in _named_models(case, source):
        if means_the_same(source, node, there):
            return source.text_of(node)
    function = source.function_of(there)
    call = only_call(source, function)
    if call is None or not isinstance(function, ast.FunctionDef):
        return None
    # As the function was handed it.
    name = model_name(case, source, call)
    own = [a.arg for a in function.args.args if a.arg != "self"]
    given = dict(zip(own, call.args, strict=False))
    given |= {k.arg: k.value for k in call.keywords if k.arg is not None}
    return next((arg for arg, value in given.items() if source.text_of(value) == name), None)


def _named_models(case: Case, source: Source) -> Iterator[ast.expr]:
    for mode in case.run.of_kind("mode"):
        if case.source(mode.site) is source and mode.site is not None:
            calls = source.calls_at(mode.site.line, "eval", "train")
            yield from filter(None, map(receiver, calls))
    for forward in dict.fromkeys(e.site for e in case.run.of_kind("forward")):
        if case.source(forward) is source and forward is not None:
            called = model_called(source, forward.line)
            if called is not None:
                yield called
    for module in case.run.modules:
        if module.path or case.source(module.built) is not source or module.built is None:
            continue
        target = target_of(source.statement_at(module.built.line), module.cls)
        if target is not None:
            yield target


def model_called(source: Source, line: int) -> ast.expr | None:
    """What is called on the line of a forward pass, where it can only be the model."""
    known = bound_in(source.tree)
    functions = {
        n.name for n in ast.walk(source.tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))
    }
    found = []
    for call in source.calls_at(line):
        func = call.func
        if not is_simple(func) or full_name(source, func) != ast.unparse(func):
            continue
        name = func.id if isinstance(func, ast.Name) else ""
        if name in functions or (hasattr(builtins, name) and name not in known):
            continue
        if isinstance(func, ast.Attribute) and not _holds_modules(func):
            continue
        found.append(func)
    return found[0] if len(found) == 1 else None


def _holds_modules(func: ast.Attribute) -> bool:
    """An attribute of self or of an object of the user's that is called, unlike a method."""
    return isinstance(func.value, (ast.Name, ast.Attribute)) and func.attr.isidentifier()

"""Give the optimizer what it lacks: all parameters of the model, or those that were left out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, replace
from sawbones.fixing.loop_parts import model_name
from sawbones.fixing.names import binder, means_the_same, target_of, value_of
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source
from sawbones.schema import Tensor


def fix(case: Case) -> Iterator[Change]:
    owned = [t for t in case.run.tensors if t.in_model and t.requires_grad]
    left = [t for t in owned if t.optimizer < 0]
    for optimizer in case.run.optimizers[:1]:
        made = case.made_optimizer(optimizer.index)
        given = keyword_of(made[1], "params", 0) if made is not None else None
        if made is None or given is None:
            continue
        source, call = made
        several = case.run.modules and all(m.path for m in case.run.modules)
        model = model_name(case, source, call) if not several else None
        holder = _holder(value_of(source, given))
        grouped = len(optimizer.groups) > 1
        if holder is not None:
            yield from _whole(source, holder, value_of(source, given))
        elif model is not None and not grouped:
            text = f"{model}.parameters()"
            summary = f"Hand all parameters to the optimizer: {text}."
            yield Change(summary, (replace(source, given, text),))
        for parts in (_modules(case, source, call, left), _parts(model, owned, left)):
            if parts:
                yield _as_well(source, given, list(parts), grouped)


def _holder(root: ast.expr) -> ast.expr | None:
    """Of `model.encoder.parameters()` the module."""
    if not isinstance(root, ast.Call) or not isinstance(root.func, ast.Attribute):
        return None
    return root.func.value if root.func.attr == "parameters" else None


def _whole(source: Source, holder: ast.expr, root: ast.expr) -> Iterator[Change]:
    """`model.encoder.parameters()` -> `model.parameters()`."""
    while isinstance(holder, ast.Attribute):
        holder = holder.value
        text = f"{source.text_of(holder)}.parameters()"
        yield Change(
            f"Hand all parameters to the optimizer: {text}.", (replace(source, root, text),)
        )


def _as_well(source: Source, given: ast.expr, parts: list[str], grouped: bool) -> Change:
    """However the parameters were collected: what is missing is handed over beside them."""
    text = ", ".join(parts)
    more = f'{{"params": [{text}]}}' if grouped else text
    return Change(
        f"Hand {text.replace('*', '')} to the optimizer as well.",
        (replace(source, given, f"[*{source.text_of(given)}, {more}]"),),
    )


def _modules(
    case: Case, source: Source, call: ast.Call, left: list[Tensor]
) -> dict[str, None] | None:
    """Modules of the script of which nothing is held, by the names that they were given."""
    found: dict[str, None] = {}
    for owner in dict.fromkeys(t.name.split(".")[0] for t in left):
        here = binder(source, owner, call) is not None
        named = owner if here else _built(case, source, call, owner)
        if named is None:
            return None
        found[f"*{named}.parameters()"] = None
    return found


def _built(case: Case, source: Source, call: ast.Call, owner: str) -> str | None:
    for module in case.run.modules:
        built = module.built if module.path == owner else None
        made = source.statement_at(built.line) if built and case.source(built) is source else None
        target = target_of(made, module.cls)
        if target is not None and means_the_same(source, target, call):
            return source.text_of(target)
    return None


def _parts(model: str | None, owned: list[Tensor], left: list[Tensor]) -> dict[str, None]:
    """The outermost modules of which nothing is held, and single parameters beside them."""
    held = [t.name for t in owned if t not in left]
    found: dict[str, None] = {}
    for tensor in left if model is not None else ():
        steps = tensor.name.split(".")
        path = str(model)
        for number, step in enumerate(steps, 1):
            path += f"[{step}]" if step.isdigit() else f".{step}"
            inside = ".".join([*steps[:number], ""])
            if not any(name.startswith(inside) for name in held):
                found[path if number == len(steps) else f"*{path}.parameters()"] = None
                break
    return found

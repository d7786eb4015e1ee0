"""Give the optimizer what it lacks: all parameters of the model, or those that were left out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import after, keyword_of, replace
from sawbones.fixing.loop_parts import model_name
from sawbones.fixing.names import value_of
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
        model = model_name(case, source, call)
        root = value_of(source, given)
        holder = _holder(root)
        if holder is not None:
            yield from _whole(source, holder, root)
        elif model is not None and len(optimizer.groups) == 1:
            text = f"{model}.parameters()"
            summary = f"Hand all parameters to the optimizer: {text}."
            yield Change(summary, (replace(source, given, text),))
        for owner in dict.fromkeys(t.name.split(".")[0] for t in left) if holder else ():
            yield from _beside(source, root, owner)
        if model is not None:
            yield from _another_group(source, call, list(_parts(model, owned, left)))


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


def _beside(source: Source, root: ast.expr, owner: str) -> Iterator[Change]:
    """A second module of the script, whose name in the run is its class or its path."""
    both = f"[*{source.text_of(root)}, *{owner}.parameters()]"
    names = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name)}
    if owner in names:
        yield Change(
            f"Hand {owner}.parameters() to the optimizer as well.", (replace(source, root, both),)
        )


def _another_group(source: Source, call: ast.Call, parts: list[str]) -> Iterator[Change]:
    """However the groups were collected: what is missing becomes one more."""
    statement = source.statement(call)
    if not isinstance(statement, ast.Assign) or statement.value is not call or not parts:
        return
    name = source.text_of(statement.targets[0])
    line = f'{name}.add_param_group({{"params": [{", ".join(parts)}]}})'
    yield Change(
        "Hand what is left out to the optimizer as a group of its own.",
        (after(source, statement, line),),
    )


def _parts(model: str, owned: list[Tensor], left: list[Tensor]) -> dict[str, None]:
    """The outermost modules of which nothing is held, and single parameters beside them."""
    held = [t.name for t in owned if t not in left]
    found: dict[str, None] = {}
    for tensor in left:
        steps = tensor.name.split(".")
        path = model
        for number, step in enumerate(steps, 1):
            path += f"[{step}]" if step.isdigit() else f".{step}"
            inside = ".".join([*steps[:number], ""])
            if not any(name.startswith(inside) for name in held):
                found[path if number == len(steps) else f"*{path}.parameters()"] = None
                break
    return found

"""Give the optimizer what it lacks: all parameters of the model, or those of the module beside it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, replace
from sawbones.fixing.names import value_of
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source


def fix(case: Case) -> Iterator[Change]:
    left = [t for t in case.run.tensors if t.in_model and t.requires_grad and t.optimizer < 0]
    for optimizer in case.run.optimizers[:1]:
        made = case.made_optimizer(optimizer.index)
        given = keyword_of(made[1], "params", 0) if made is not None else None
        if made is None or given is None:
            continue
        source = made[0]
        root = value_of(source, given)
        if not isinstance(root, ast.Call) or not isinstance(root.func, ast.Attribute):
            continue
        if root.func.attr != "parameters":
            continue
        yield from _whole(source, root.func.value, root)
        for owner in dict.fromkeys(t.name.split(".")[0] for t in left):
            yield from _beside(source, root, owner)


def _whole(source: Source, holder: ast.expr, root: ast.Call) -> Iterator[Change]:
    """`model.encoder.parameters()` -> `model.parameters()`."""
    while isinstance(holder, ast.Attribute):
        holder = holder.value
        text = f"{source.text_of(holder)}.parameters()"
        yield Change(
            f"Hand all parameters to the optimizer: {text}.", (replace(source, root, text),)
        )


def _beside(source: Source, root: ast.Call, owner: str) -> Iterator[Change]:
    """A second module of the script, whose name in the run is its class or its path."""
    both = f"[*{source.text_of(root)}, *{owner}.parameters()]"
    names = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name)}
    if owner in names:
        yield Change(
            f"Hand {owner}.parameters() to the optimizer as well.", (replace(source, root, both),)
        )

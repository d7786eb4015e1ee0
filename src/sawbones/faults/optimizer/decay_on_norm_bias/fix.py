"""Parameters with fewer than two dimensions in a group of their own, without decay."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import keyword_of, replace
from sawbones.fixing.names import is_simple, value_of
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    for optimizer in case.run.optimizers:
        made = case.made_optimizer(optimizer.index)
        given = keyword_of(made[1], "params", 0) if made is not None else None
        if made is None or given is None:
            continue
        source = made[0]
        root = value_of(source, given)
        holder = root if isinstance(root, ast.Call) else None
        plain = holder is not None and not holder.args and not holder.keywords
        if holder is None or not plain or not isinstance(holder.func, ast.Attribute):
            continue
        if holder.func.attr != "parameters" or not is_simple(holder.func.value):
            continue
        text = source.text_of(holder)
        groups = (
            f'[{{"params": [p for p in {text} if p.ndim > 1]}}, '
            f'{{"params": [p for p in {text} if p.ndim < 2], "weight_decay": 0.0}}]'
        )
        yield Change(
            "Decay the matrices alone: vectors get a group with weight_decay=0.0.",
            (replace(source, given, groups),),
        )

"""Step at the last batch of an epoch as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.names import is_simple
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name


def fix(case: Case) -> Iterator[Change]:
    optimizer = case.optimizer()
    if optimizer is None:
        return
    source = optimizer.source
    condition: ast.If | None = None
    for outer in source.around(optimizer.call):
        if isinstance(outer, ast.If) and condition is None:
            condition = outer
        if isinstance(outer, ast.For) and condition is not None:
            last = _last(source, outer)
            if last is None:
                return
            test = source.text_of(condition.test)
            yield Change(
                f"Step at the last batch of an epoch as well: or {last}.",
                (replace(source, condition.test, f"{test} or {last}"),),
            )
            return


def _last(source: Source, loop: ast.For) -> str | None:
    """That this is the last turn of `for i, batch in enumerate(loader)`."""
    counted = loop.iter
    if not isinstance(counted, ast.Call) or called_name(counted) != "enumerate":
        return None
    if not isinstance(loop.target, ast.Tuple) or not counted.args:
        return None
    loader, index = counted.args[0], source.text_of(loop.target.elts[0])
    if not is_simple(loader):
        return None
    begins = counted.args[1] if len(counted.args) > 1 else None
    begins = next((k.value for k in counted.keywords if k.arg == "start"), begins)
    start = begins.value if isinstance(begins, ast.Constant) else 0 if begins is None else None
    if start not in (0, 1):
        return None
    done = f"{index} + 1" if start == 0 else index
    return f"{done} == len({source.text_of(loader)})"

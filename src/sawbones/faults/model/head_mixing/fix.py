"""Dimensions change places before they are merged, or after they were split, as the shapes ask."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import accumulate, combinations
from operator import mul

from sawbones.faults.model.head_mixing.check import RESHAPING, displaced
from sawbones.fixing.editing import Edit, replace
from sawbones.fixing.expressions import operand
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name

Shape = tuple[int, ...]
Order = tuple[int, ...]


def fix(case: Case) -> Iterator[Change]:
    """Every reshape that shuffles: one that is left would shuffle what the others put right."""
    edits: list[Edit] = []
    seen: set[tuple[str, int, int]] = set()
    for op in (op for deep in case.run.deep[:1] for op in deep.ops if op.name in RESHAPING):
        source = case.source(op.site)
        if op.site is None or source is None or not op.inputs or not op.outputs:
            continue
        before, after = op.inputs[0].shape, op.outputs[0].shape
        if not op.outputs[0].requires_grad or displaced(before, after) is None:
            continue
        for call in source.calls_at(op.site.line, *RESHAPING):
            key = (source.file, call.lineno, call.end_col_offset or 0)
            found = None if key in seen else _mended(source, call, before, after)
            if found is not None:
                seen.add(key)
                edits += found
                break
    if edits:
        yield Change("Let the dimensions change places, and reshape in that order.", tuple(edits))


def _mended(source: Source, call: ast.Call, before: Shape, after: Shape) -> list[Edit] | None:
    for order in _orders(len(before)):
        moved = tuple(before[i] for i in order)
        if _ends(after) <= _ends(moved):
            return _merged(source, call, order, alone=moved == after)
    given = call.args[0] if len(call.args) == 1 else None
    sizes = given.elts if isinstance(given, (ast.Tuple, ast.List)) else call.args
    if called_name(call) not in ("view", "reshape") or len(sizes) != len(after):
        return None
    for order in _orders(len(after)):
        if _ends(before) <= _ends([after[i] for i in order]):
            return _split(source, call, sizes, order)
    return None


def _orders(size: int) -> list[Order]:
    """Two neighbouring blocks of dimensions the other way round, the smallest first."""
    cuts = sorted(combinations(range(size + 1), 3), key=lambda cut: cut[2] - cut[0])
    every = range(size)
    return [(*every[:a], *every[b:c], *every[a:b], *every[c:]) for a, b, c in cuts]


def _ends(sizes: Sequence[int]) -> set[int]:
    """Where the dimensions end in memory: a shape whose ends are among another's merges it."""
    return set(accumulate(sizes, mul))


def _merged(source: Source, call: ast.Call, order: Order, alone: bool) -> list[Edit] | None:
    given = operand(source, call)
    if given is None:
        return None
    start, stop = source.span(given)[1], source.span(call.func)[1]
    if given is not getattr(call.func, "value", None):  # torch.reshape(x, ...)
        return [Edit(source.file, start, start, _moving(order))]
    if alone:
        return [Edit(source.file, start, source.span(call)[1], _moving(order))]
    # A view of what has changed places is refused by torch.
    name = called_name(call).replace("view", "reshape")
    return [Edit(source.file, start, stop, f"{_moving(order)}.{name}")]


def _split(source: Source, call: ast.Call, sizes: list[ast.expr], order: Order) -> list[Edit]:
    moved = [replace(source, sizes[i], source.text_of(sizes[n])) for i, n in enumerate(order)]
    stop = source.span(call)[1]
    back = tuple(order.index(i) for i in range(len(order)))
    return [*moved, Edit(source.file, stop, stop, _moving(back))]


def _moving(order: Order) -> str:
    changed = [i for i, n in enumerate(order) if i != n]
    if len(changed) == 2:
        return f".transpose({changed[0]}, {changed[1]})"
    return f".permute({', '.join(map(str, order))})"

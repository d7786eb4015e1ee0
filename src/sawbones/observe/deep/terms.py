"""The terms that a loss is the sum of: what each would train, and what was cut off in front of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.modules import Paths
from sawbones.observe.deep.reach import cutting, leaves
from sawbones.observe.deep.trace import RawOp, Ref
from sawbones.trace.operators import FORMING

_ADDING = frozenset({"add", "add_", "sub", "sub_", "rsub", "sum", "mean", "stack", "cat", "neg"})
_WEIGHING = frozenset({"mul", "mul_", "div", "div_"})
_MAX_TERMS = 32
_MAX_CUTS = 64
_NAMED = 3


def cut_terms(
    graph: OpGraph, root: Ref, holders: Mapping[int, int], paths: Paths
) -> list[dict[str, Any]]:
    """Single numbers that are summed up to the loss and behind which values were taken out of the
    graph. `trains`: the optimizers of the parameters that the term reaches, -1 for none; `lost`:
    of those that it no longer reaches.

    A loss that is itself detached, to be shown or to keep a value, is as it was meant: what counts
    is a cut in front of the loss, among several values.
    """
    terms = list(_terms(graph, root))
    tensor = root.tensor()
    trained = leaves(tensor) if tensor is not None and len(terms) > 1 else None
    held = {holders[key] for key in trained or () if key in holders}
    cut = {op.index for op in cutting(graph)} if held else set()
    found: list[dict[str, Any]] = []
    for value, before in terms if cut else ():
        tensor, made = value.tensor(), graph.maker(value, before)
        reached = leaves(tensor) if tensor is not None else None
        if reached is None or made is None:
            continue
        trains = {holders.get(key, -1) for key in reached}
        if held <= trains:
            continue
        behind = [op for op in graph.behind(value, before) if op.index in cut]
        for op in behind[:_MAX_CUTS]:
            lost = _lost(op, reached)
            if lost:
                found.append(
                    {
                        "site": made.site,
                        "cut": op.name,
                        "cut_at": op.site,
                        "switched": op.switched,
                        "trains": sorted(trains),
                        "lost": sorted({holders.get(key, -1) for key in lost}),
                        "names": [paths.parameters.get(key, "") for key in lost][:_NAMED],
                    }
                )
    return found[:_MAX_CUTS]


def _lost(cut: RawOp, reached: Mapping[int, torch.Tensor]) -> dict[int, torch.Tensor]:
    lost: dict[int, torch.Tensor] = {}
    for given in cut.inputs:
        tensor = given.tensor()
        if tensor is not None and given.requires_grad and math.prod(given.shape) > 1:
            lost |= leaves(tensor) or {}
    return {key: t for key, t in lost.items() if key not in reached}


def _terms(graph: OpGraph, root: Ref) -> Iterator[tuple[Ref, int | None]]:
    """What is added up, seen through weights that are no tensors with gradients."""
    waiting: list[tuple[Ref, int | None]] = [(root, None)]
    seen = 0
    while waiting and seen < 4 * _MAX_TERMS:
        seen += 1
        value, before = waiting.pop()
        op = graph.maker(value, before)
        inner = _inner(op) if op is not None else None
        if op is None or inner is None:
            yield value, before
        else:
            waiting += [(given, op.index) for given in inner]


def _inner(op: RawOp) -> list[Ref] | None:
    """The summands, where an operator adds single numbers or weighs one."""
    given = [r for r in op.inputs if r.dtype.startswith(("float", "bfloat"))]
    if not given or any(math.prod(r.shape) != 1 for r in given):
        several = op.name in ("sum", "mean") and len(given) == 1 and given[0].shape
        return given if several and math.prod(given[0].shape) <= _MAX_TERMS else None
    if op.name in _ADDING or (op.name in FORMING and len(given) == 1):
        return given
    if op.name in _WEIGHING:
        weighed = [r for r in given if r.requires_grad] or given
        return weighed if len(weighed) == 1 else None
    return None

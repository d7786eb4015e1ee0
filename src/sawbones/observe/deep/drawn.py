"""Which dimension of a tensor holds examples that were drawn in no order: rows that an index out of
order took out of a table, or the batch of a loader that shuffles and puts examples side by side.

A recurrence along such a dimension carries nothing from one place to the next.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.layout import swaps
from sawbones.observe.deep.trace import RawOp, Ref
from sawbones.trace.operators import PASSING

_COMPARED = 1 << 22  # values at most
FEWEST = 4  # rows: of three, one of three orders goes up or down


def batch_dim(
    graph: OpGraph, ref: Ref, before: int | None, loaded: Sequence[torch.Tensor]
) -> int | None:
    """0 or 1 where one of the first two dimensions is known to hold the drawn examples."""
    swapped = False
    for value, op in graph.way(ref, before):
        place = _place_in(value.tensor(), loaded)
        if place is not None:
            return place ^ int(swapped)
        if op is None:
            return None
        drawn = rows_drawn(op)
        if drawn is not None:
            return drawn[0] ^ int(swapped)
        if swaps(op):
            swapped = not swapped
        elif not _keeps_place(op):
            return None
    return None


def _place_in(tensor: torch.Tensor | None, loaded: Sequence[torch.Tensor]) -> int | None:
    """Where the first dimension of one of these tensors lies in this one: a model may have been
    given a batch that was turned before the step was watched.
    """
    if tensor is None:
        return None
    for batch in loaded:
        if tensor is batch:
            return 0
        if tensor.dim() < 2 or tensor.dim() != batch.dim() or tensor.device != batch.device:
            continue
        if tensor.dtype == batch.dtype and tensor.numel() <= _COMPARED:
            for place, same in ((0, batch), (1, batch.transpose(0, 1))):
                if tensor.shape == same.shape and torch.equal(tensor, same):
                    return place
    return None


def rows_drawn(op: RawOp) -> tuple[int, torch.Tensor] | None:
    """Along which dimension an operator takes examples out of a table of data, and their numbers,
    where they are in no order.
    """
    taken = rows_taken(op)
    if taken is None or len(taken[1]) < FEWEST:
        return None
    steps = taken[1][1:] - taken[1][:-1]
    return taken if bool((steps > 0).any()) and bool((steps < 0).any()) else None


def rows_taken(op: RawOp) -> tuple[int, torch.Tensor] | None:
    """The same in any order: table[rows] and table[:, rows], as indices and as index_select."""
    index, dim = None, 0
    if op.name == "__getitem__":
        index = op.arguments.get("other")  # a tensor alone
        if index is None and "index0" in op.arguments and "index1" not in op.arguments:
            index, dim = op.arguments["index0"], 1
    elif op.name == "index_select" and op.args.get("dim") in (0, 1):
        index, dim = op.arguments.get("index"), op.args["dim"]
    if index is None or len(index.shape) != 1 or not op.inputs or op.inputs[0].requires_grad:
        return None
    given, made = op.inputs[0].shape, op.outputs[0].shape
    alike = len(given) == len(made) and made[dim : dim + 1] == index.shape
    if not alike or (dim == 1 and given[0] != made[0]):
        return None  # one place of each of these rows, or rows and places at once
    rows = index.tensor()
    if rows is None or rows.dtype not in (torch.int64, torch.int32) or len(rows) == 0:
        return None
    return dim, rows.detach().to("cpu", torch.int64)


def form_of(
    graph: OpGraph, ref: Ref, before: int | None, shape: tuple[int, int] | None
) -> Ref | None:
    """The value with these first two dimensions, before it was flattened; itself for None."""
    for value, _ in graph.way(ref, before, PASSING):
        if len(value.shape) in (2, 3) and shape in (None, value.shape[:2]):
            return value
        if shape is None:
            return None
    return None


def _keeps_place(op: RawOp) -> bool:
    """The first two dimensions stay where they are."""
    if op.name not in PASSING or not op.inputs:
        return False
    given, made = op.inputs[0].shape, op.outputs[0].shape
    if len(given) < 2 or len(made) < 2:
        return False
    if given[:2] == made[:2]:
        return True
    cut = op.name in ("__getitem__", "narrow") and len(given) == len(made)
    return cut and (given[0] == made[0] or given[1] == made[1])

"""Tables of all pairs of two vectors with one number per example, as broadcasting makes them.

Whoever means pairs treats the two axes of such a table differently sooner or later (a softmax or a
sum along one, a mask, products of features), or sets out from one vector against itself. A table
that nobody meant is only ever taken element by element, up to the mean of all of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from sawbones.schema import DeepStep, LossCall, Op, Value
from sawbones.trace.graph import StepGraph
from sawbones.trace.operators import ELEMENTWISE, FORMING

_CROSSING = frozenset({"add", "sub", "rsub", "mul", "div", "rdiv", "maximum", "minimum"})
_ADDING_AXES = frozenset({"unsqueeze", "unsqueeze_", "__getitem__", "view", "reshape"})


@dataclass(frozen=True)
class PairTable:
    op: Op  # (n,) against (n, 1)
    made: tuple[Op | None, Op | None]  # what made the column, and the row
    met: Value | None  # one number per example that every pair was set against

    @property
    def size(self) -> int:
        return self.op.outputs[0].shape[0]


def mixed_tables(deep: DeepStep, losses: list[LossCall]) -> Iterator[PairTable]:
    """Those that the backward pass goes through, and that nobody meant."""
    graph = StepGraph(deep, with_no_grad=True)
    per_example = {v.id for call in losses if (op := graph.at(call.op)) for v in op.outputs}
    against = {
        v.id for call in losses for v in (call.input, call.target) if v is not None and _is_one(v)
    }
    crossing = [op for op in deep.ops if _crosses(op) and not _is_of_one(graph, op)]
    for op in crossing:
        row, column = sorted(op.inputs, key=lambda v: len(v.shape))
        ended, met = _followed(deep, op, {other.outputs[0].id for other in crossing})
        if not ended:
            continue
        # An axis that was added on the spot may be there for the pairs; not so where they are set
        # against one number per example, or each of the two is a loss of its own.
        if (
            not _is_added(graph, column, op.index)
            or any(v.id in against or (len(v.shape) == 2 and not _is_added(graph, v)) for v in met)
            or {row.id, column.id} & per_example
        ):
            made = graph.maker(column, op.index), graph.maker(row, op.index)
            yield PairTable(op, made, met[0] if met else None)


def _crosses(op: Op) -> bool:
    if op.name not in _CROSSING or len(op.inputs) != 2 or len(op.outputs) != 1:
        return False
    row, column = sorted((v.shape for v in op.inputs), key=len)
    real = all(v.dtype.startswith(("float", "bfloat")) for v in op.inputs)
    return real and len(row) == 1 and row[0] >= 2 and column == (row[0], 1)


def _is_of_one(graph: StepGraph, op: Op) -> bool:
    """One vector against itself, or a parameter: no two numbers of each example."""
    origins = [graph.origin(v, op.index, FORMING) for v in op.inputs]
    learned = any(v.requires_grad and made is None for v, made in origins)
    return learned or len({v.id for v, _ in origins}) == 1


def _is_added(graph: StepGraph, column: Value, before: int | None = None) -> bool:
    made = graph.maker(column, before)
    return made is not None and made.name in _ADDING_AXES and len(made.inputs[0].shape) == 1


def _followed(deep: DeepStep, table: Op, alike: set[int]) -> tuple[bool, list[Value]]:
    """Whether all that becomes of a table, alone or with others that are made alike, is one number
    that gradients start from; and the vectors that it meets on the way.
    """
    full = table.outputs[0].shape
    tables, met, ended = {table.outputs[0].id}, list[Value](), False
    for op in deep.ops:
        if op.index <= table.index or not any(v.id in tables for v in op.inputs):
            continue
        others = [v for v in op.inputs if v.id not in tables | alike and math.prod(v.shape) > 1]
        shapes = {v.shape for v in op.outputs}
        if not all(_is_one(v) and v.shape[0] == full[0] for v in others):
            return False, []
        if shapes == {()}:
            ended = ended or op.outputs[0].requires_grad
        elif shapes == {full} and op.name in ELEMENTWISE:
            tables.update(v.id for v in op.outputs)
        elif shapes:
            return False, []
        met += others
    return ended, met


def _is_one(value: Value) -> bool:
    """One number for each example."""
    return len(value.shape) == 1 or (len(value.shape) == 2 and value.shape[1] == 1)

"""The operator graph of a step that is running."""

from __future__ import annotations

from sawbones.observe.deep.trace import RawOp, Ref
from sawbones.trace.graph import Graph


class OpGraph(Graph[RawOp, Ref]):
    def __init__(self, ops: list[RawOp]) -> None:
        # An optimizer's write: the parameter is where the model begins all the same.
        super().__init__(ops, lambda op, ref: not (op.silent and ref.is_parameter))

"""A softmax that is written out: exp(s - logsumexp(s)), exp(s) / sum(exp(s)), or the exponential of
a log-softmax.

Recognised by its values, which are not negative and sum to one along a dimension, and by the
exponential that they come from.
"""

from __future__ import annotations

from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.trace import RawOp, Ref
from sawbones.trace.operators import RESHAPING

ENDS = frozenset({"exp", "div", "div_", "exp_"})
_ON_THE_WAY = RESHAPING | {
    "mul",
    "mul_",
    "masked_fill",
    "where",
}  # a mask may be multiplied in after the exponential
_SHIFTS = frozenset({"sub", "sub_"})
_SUM_ERROR = 1e-3
_MAX_ELEMENTS = 1 << 22


def softmax(op: RawOp, graph: OpGraph) -> tuple[Ref, int] | None:
    """The scores and the dimension that is summed over, of an operator that gives the weights."""
    if (
        not op.outputs
        or len(op.outputs[0].shape) < 3
        or not op.outputs[0].requires_grad
        or not op.inputs
    ):
        return None
    power = op if op.name.startswith("exp") else _exponential(op, graph)
    if power is None or not power.inputs:
        return None
    scores = _unshifted(power.inputs[0], power.index, graph)
    weights = op.outputs[0].tensor()
    if weights is None or weights.numel() > _MAX_ELEMENTS or scores.shape != op.outputs[0].shape:
        return None
    weights = weights.detach().float()
    if bool((weights < 0).any()):
        return None
    for dim in range(weights.dim() - 1, -1, -1):
        if weights.shape[dim] > 1 and float((weights.sum(dim) - 1.0).abs().max()) < _SUM_ERROR:
            return scores, dim
    return None


def _exponential(op: RawOp, graph: OpGraph) -> RawOp | None:
    _, maker = graph.origin(op.inputs[0], op.index, _ON_THE_WAY)
    return maker if maker is not None and maker.name.startswith("exp") else None


def _unshifted(given: Ref, before: int, graph: OpGraph) -> Ref:
    """The scores before their maximum or log-sum was taken off, which changes nothing about the
    weights.
    """
    maker = graph.maker(given, before)
    if (
        maker is not None
        and maker.inputs
        and (maker.name == "log_softmax" or maker.name in _SHIFTS)
    ):
        taken = maker.inputs[1] if len(maker.inputs) > 1 else None
        if maker.name == "log_softmax" or (
            taken is not None and 1 in taken.shape and len(taken.shape) == len(given.shape)
        ):
            return maker.inputs[0]
    return given

"""Which dimension of the input the sequence layers take for time, through the transpositions on the
way to them.
"""

from __future__ import annotations

from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.trace import RawOp, Ref

_RECURRENT = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})
_ATTENDING = (
    "multi_head_attention_forward"  # takes (time, batch, features) whatever its layer was told
)


def input_is_time_first(graph: OpGraph) -> bool | None:
    """As the first recurrent or attention layer believes of what it is made from; None when none
    ran.
    """
    for op in graph.ops:
        if op.silent or not op.inputs or not (op.name == _ATTENDING or op.name in _RECURRENT):
            continue
        first = op.inputs[0]
        if len(first.shape) != 3:
            continue
        time_first = op.name == _ATTENDING or not getattr(op.module, "batch_first", False)
        return time_first != _turned(graph, first, op.index)
    return None


def recurrent_input(graph: OpGraph) -> Ref | None:
    """What the first recurrent layer was given; None where none ran."""
    ran = (op for op in graph.ops if op.name in _RECURRENT and not op.silent)
    return next((op.inputs[0] for op in ran if op.inputs), None)


def _turned(graph: OpGraph, ref: Ref, before: int) -> bool:
    """Whether the first two dimensions change places an odd number of times on the way from the
    input.
    """
    odd = False
    for _, op in graph.way(ref, before, follow=_alike):
        odd ^= op is not None and swaps(op)
    return odd


def _alike(op: RawOp) -> Ref | None:
    """What it was given with as many dimensions, rather something that is learned."""
    size = len(op.outputs[0].shape) if op.name != "embedding" else None
    ways = [r for r in op.inputs if len(r.shape) == size and not r.is_parameter]
    return max(ways, key=lambda r: r.requires_grad, default=None)


def swaps(op: RawOp) -> bool:
    """The first two dimensions change places."""
    if op.name in ("t", "T", "mT"):
        return len(op.inputs[0].shape) == 2
    if op.name == "transpose":
        dims = op.args.get("dim0"), op.args.get("dim1")
        rank = len(op.inputs[0].shape)
        return all(isinstance(d, int) for d in dims) and {
            d % rank for d in dims if isinstance(d, int)
        } == {0, 1}
    sizes = op.args.get("sizes", op.args.get("dims")) if op.name == "permute" else None
    return isinstance(sizes, (list, tuple)) and tuple(sizes[:2]) == (1, 0)

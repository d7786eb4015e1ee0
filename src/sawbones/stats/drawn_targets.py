"""Targets that are fresh random draws of their own step, and whether the model was given anything
that was computed from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from sawbones.schema import Op, Run, Value
from sawbones.stats.loss_calls import Seen, carrying
from sawbones.stats.series import Floats, finite
from sawbones.trace.graph import StepGraph
from sawbones.trace.operators import ELEMENTWISE, PASSING

NORMAL = frozenset({"randn", "randn_like", "normal", "normal_"})
UNIFORM = frozenset({"rand", "rand_like", "uniform_"})
_BY_ELEMENT = PASSING | ELEMENTWISE | {"lerp", "lerp_", "addcmul", "addcmul_"}
_LEAVING = frozenset(
    {"item", "tolist", "numpy", "__array__", "__float__", "__int__", "__index__", "__iter__"}
)
# Of longer traces, and of more operators without gradients, a part was left out.
_WHOLE_TRACE, _WHOLE_SILENT = 6000, 1000
_MOST_OPS = 20_000
_TAIL = 0.2  # of the run
_GRID = 2001  # quantiles of a draw


@dataclass(frozen=True)
class Draws:
    """Of one deep step whose target is drawn in it."""

    seen: Seen
    target: Op  # that drew the target
    given: Op | None  # a draw like it that was added to the data which the model is given
    is_given: bool  # the model is given something that was computed from the target's draw


def drawn_targets(run: Run) -> list[Draws]:
    """Deep steps whose target is nothing but random numbers drawn there, scaled or shifted."""
    return [found for seen in carrying(run) if (found := _drawn(seen)) is not None]


def _drawn(seen: Seen) -> Draws | None:
    call, deep = seen.call, seen.deep
    target = call.target
    silent = sum(bool(op.args.get("no_grad")) for op in deep.ops)
    if (
        target is None
        or target.requires_grad
        or target.shape != call.input.shape
        or not target.dtype.startswith(("float", "bfloat"))
        or len(deep.ops) >= _WHOLE_TRACE
        or silent >= _WHOLE_SILENT
    ):
        return None
    graph = StepGraph(deep, with_no_grad=True)
    draws = _draws_behind(graph, target, call.op)
    if not draws or any(_escapes(graph, draw, call.op) for draw in draws):
        return None
    ways = {op.index for op in graph.behind(call.input, call.op, _MOST_OPS)}
    own = draws[0]
    others = [op for op in deep.ops if op.index in ways and _is_like(op, own)]
    given = next((op for op in others if _is_added_to_data(graph, op)), None)
    return Draws(seen, own, given, any(draw.index in ways for draw in draws))


def _is_draw(op: Op) -> bool:
    """Random numbers that depend on nothing: `like` another tensor takes its shape alone."""
    if op.name == "normal":
        return not op.inputs
    return op.name in NORMAL | UNIFORM


def _is_like(op: Op, own: Op) -> bool:
    kind = NORMAL if own.name in NORMAL else UNIFORM
    same = bool(op.outputs) and op.outputs[0].shape == own.outputs[0].shape
    return _is_draw(op) and op.name in kind and same and op.index != own.index


def _draws_behind(graph: StepGraph, value: Value, before: int) -> list[Op]:
    """The draws that a value is made of, with plain numbers; empty where anything else is in it."""
    found: dict[int, Op] = {}
    waiting, seen = [(value, before)], set()
    while waiting:
        current, place = waiting.pop()
        op = graph.maker(current, place)
        if op is None:
            if current.shape:
                return []
            continue
        if op.index in seen:
            continue
        seen.add(op.index)
        if _is_draw(op):
            found[op.index] = op
        elif op.name in _BY_ELEMENT:
            waiting += [(given, op.index) for given in op.inputs]
        else:
            return []
    return [found[index] for index in sorted(found)]


def _escapes(graph: StepGraph, draw: Op, end: int) -> bool:
    """Before the loss something made from the draw leaves torch, or is written into another tensor
    in place, which other names of the same memory show as well: from there on it is not followed.
    """
    reached = {value.id for value in draw.outputs}
    for op in graph.after(draw.outputs):
        if op.index <= draw.index or op.index >= end:
            continue
        in_place = op.name.endswith("_") and any(v.id not in reached for v in op.outputs)
        if op.name in _LEAVING or in_place:
            return True
        reached.update(value.id for value in op.outputs)
    return False


def _is_added_to_data(graph: StepGraph, draw: Op) -> bool:
    """It meets, element by element, something that is neither drawn nor learned."""
    reached = {value.id for value in draw.outputs}
    for op in graph.after(draw.outputs):
        if op.index <= draw.index or op.name not in _BY_ELEMENT:
            continue
        if not any(value.id in reached for value in op.inputs):
            continue
        shape = draw.outputs[0].shape
        for other in op.inputs:
            plain = other.id not in reached and not other.requires_grad and other.shape == shape
            if plain and not _draws_behind(graph, other, op.index):
                return True
        reached.update(value.id for value in op.outputs if not value.requires_grad)
    return False


def loss_of_constant(draws: Draws) -> float:
    """What the best constant answer scores against such a draw: NaN where the loss is none of
    those that take every number by itself.
    """
    call, spread = draws.seen.call, draws.seen.call.target
    function = _LOSSES.get(call.fn)
    if function is None or spread is None or spread.std is None:
        return math.nan
    op = next((op for op in draws.seen.deep.ops if op.index == call.op), None)
    args = op.args if op is not None else {}
    width = args.get("delta", args.get("beta", 1.0))
    places = (np.arange(_GRID) + 0.5) / _GRID
    if draws.target.name in NORMAL:
        numbers = np.array([NormalDist().inv_cdf(place) for place in places])
    else:
        numbers = (places - 0.5) * math.sqrt(12.0)
    return float(function(np.abs(numbers * spread.std), float(width)).mean())


def _huber(off: Floats, width: float) -> Floats:
    return np.where(off <= width, 0.5 * off**2, width * (off - 0.5 * width))


def _smooth(off: Floats, width: float) -> Floats:
    return _huber(off, width) / width if width > 0 else off


_LOSSES: dict[str, Callable[[Floats, float], Floats]] = {
    "mse_loss": lambda off, _: off**2,
    "l1_loss": lambda off, _: off,
    "huber_loss": _huber,
    "smooth_l1_loss": _smooth,
}


def level_at_end(run: Run, draws: Sequence[Draws]) -> float:
    """The loss of one target over the last fifth of the run, by what a deep step saw of how the
    loss is scaled.
    """
    scales = [d.seen.number("root_over_mean") for d in draws]
    scale = float(np.median(scales))
    last = finite(run.losses)[-max(3, int(len(run.losses) * _TAIL)) :]
    return float(np.mean(last)) / scale if len(last) and scale > 0 else math.nan

"""Sequences that a layer reads step by step, while the state between the steps is cut."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from sawbones.schema import DeepStep, Op, Value
from sawbones.trace.graph import StepGraph
from sawbones.trace.operators import SLICING

CUTTING = frozenset({"detach", "detach_", "data"})
MIN_CALLS = 3  # of two, the first may be a first guess that the second starts from
_OVER_TIME = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})


@dataclass(frozen=True)
class CutSequence:
    cut: Op
    layer: Op  # its last call
    num_calls: int
    num_inputs: int  # steps of the sequence that nothing is learned from


def cut_sequences(deep: DeepStep) -> Iterator[CutSequence]:
    """A layer is called once for each step of a sequence, always on what it made before; gradients
    reach its last call alone. All inputs of the others count in the loss, and none is learned from.

    Truncation leaves some calls connected, or a loss to each of them; fixed points and refinements
    are given the same input in every call.
    """
    graph = StepGraph(deep)
    cutting = [op for op in graph.ops if _is_cut(op)]
    if len(cutting) < MIN_CALLS - 1:
        return
    losses = [call for call in deep.losses if call.facts.reaches_root is not False]
    trained = {
        op.index
        for call in losses
        for op in graph.behind(
            call.input, call.op, follow=lambda op: (v for v in op.inputs if v.requires_grad)
        )
    }
    for calls in _repeated(graph):
        last = calls[-1]
        if [op.index for op in calls if op.index in trained] != [last.index]:
            continue
        behind = {op.index for v in last.inputs for op in graph.behind(v, last.index)}
        between = [op for op in cutting if op.index in behind and op.index > calls[0].index]
        if not behind.issuperset(op.index for op in calls[:-1]) or not between:
            continue
        unused = _unused(graph, calls, trained)
        if len(unused) >= len(calls) - 1:
            yield CutSequence(between[-1], last, len(calls), len(unused))


def _is_cut(op: Op) -> bool:
    return (
        op.name in CUTTING
        and any(v.requires_grad for v in op.inputs)
        and not any(v.requires_grad for v in op.outputs)
    )


def _repeated(graph: StepGraph) -> list[list[Op]]:
    """Calls of one learned layer that read no more than a single step each."""
    calls: dict[tuple[str, tuple[int, ...]], list[Op]] = {}
    for op in graph.ops:
        weights = tuple(v.id for v in op.inputs if _is_parameter(graph, v))
        many = op.name in _OVER_TIME and 1 not in op.inputs[0].shape[:2]
        if weights and not many and any(v.requires_grad for v in op.outputs):
            calls.setdefault((op.name, weights), []).append(op)
    return [own for own in calls.values() if len(own) >= MIN_CALLS]


def _unused(graph: StepGraph, calls: list[Op], trained: set[int]) -> set[int]:
    """Inputs from outside of the recurrence that no trained operator uses."""
    later = list(graph.after(calls[0].outputs))
    inner = graph.reached(calls[0].outputs)
    used, unused = set[int](), set[int]()
    for op in {op.index: op for op in (*calls, *later)}.values():
        given = [v for v in op.inputs if v.id not in inner and math.prod(v.shape) > 1]
        ids = {i for v in given for i in _entries(graph, v, op.index)}
        (used if op.index in trained else unused).update(ids if op.index <= calls[-1].index else ())
    return unused - used


def _entries(graph: StepGraph, value: Value, before: int) -> set[int]:
    """The parts of the batch that a value was made from."""
    waiting, found, seen = [(value, before)], set[int](), set[tuple[int, int]]()
    for current, place in waiting:
        made = graph.maker(current, place)
        key = (current.id, made.index if made is not None else -1)
        if key in seen or (made is None and _is_parameter(graph, current)):
            continue
        seen.add(key)
        if made is None or made.name in SLICING:
            found.add(current.id)
        else:
            waiting += [(v, made.index) for v in made.inputs]
    return found


def _is_parameter(graph: StepGraph, value: Value) -> bool:
    return value.requires_grad and not graph.writers(value)

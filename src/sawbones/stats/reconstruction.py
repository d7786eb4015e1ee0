"""Losses whose targets are what the model is given: how they end, beside the best answer that is
the same for every row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sawbones.schema import DeepStep, LossCall, Op, Run, Site, Value
from sawbones.stats.series import finite
from sawbones.trace.graph import StepGraph


@dataclass(frozen=True)
class Reconstruction:
    site: Site | None
    losses: np.ndarray[tuple[int], np.dtype[np.float64]]  # of the term, at every step that kept it
    same_for_all: float  # what the mean of all rows scores
    last: tuple[DeepStep, LossCall]


def reconstructions(run: Run) -> Iterator[Reconstruction]:
    """Averaged over elements, at the same line on every deep step."""
    seen: dict[Site | None, list[LossCall]] = {}
    last: dict[Site | None, tuple[DeepStep, LossCall]] = {}
    for deep in run.deep:
        for call in deep.losses:
            if _is_of_input(deep, call):
                seen.setdefault(call.site, []).append(call)
                last[call.site] = (deep, call)
    for site, calls in seen.items():
        scores = [c.facts.same_for_all for c in calls if c.facts.same_for_all]
        plain = all(c.facts.effective_reduction == "mean" for c in calls)
        if site is None or not plain or len(calls) < len(run.deep) or not scores:
            continue
        events = [e for e in run.of_kind("loss") if e.site == site and e.phase == "train"]
        values = finite([float(e.data.get("value") or np.nan) for e in events])
        yield Reconstruction(site, values, float(np.median(scores)), last[site])


def _is_of_input(deep: DeepStep, call: LossCall) -> bool:
    """The target is, in another form at most, something that the answer is made of."""
    if call.target is None or call.facts.target_requires_grad or call.facts.has_weight:
        return False
    graph = StepGraph(deep, with_no_grad=True)
    origin = graph.origin(call.target, call.op)[0].id
    made = graph.behind(call.input, call.op)
    return any(
        origin in (v.id, graph.origin(v, op.index)[0].id)
        for op in made
        for v in op.inputs
        if not v.requires_grad
    )


@dataclass(frozen=True)
class OtherTerm:
    """What a reconstruction is added to."""

    op: Op | None  # that made it
    times: float  # weight of each of its numbers over that of each number given back
    share: float  # its value over that of the reconstruction


def other_term(deep: DeepStep, call: LossCall) -> OtherTerm | None:
    """None also where a term is multiplied by something that is not a number in the source."""
    graph = StepGraph(deep)
    loss = graph.at(call.op)
    ours = graph.reached(loss.outputs) | {v.id for v in loss.outputs} if loss else set()
    for op in graph.ops:
        if op.index <= call.op or op.name not in ("add", "add_") or len(op.inputs) != 2:
            continue
        mine, other = sorted(op.inputs, key=lambda v: v.id not in ours)
        if mine.id not in ours or other.id in ours or not other.requires_grad:
            continue
        weights = _weight(graph, mine, op.index, call), _weight(graph, other, op.index)
        if mine.shape != other.shape or not mine.mean or other.mean is None or not all(weights):
            return None
        times = float(weights[1] or 0) / float(weights[0] or 1)
        return OtherTerm(graph.maker(other, op.index), times, abs(other.mean / mine.mean))
    return None


_REDUCING = ("mul", "div", "neg", "mean", "sum")


def _weight(
    graph: StepGraph, value: Value, before: int, call: LossCall | None = None
) -> float | None:
    """Of each single number in a mean or sum of them, times constants."""
    weight = 1.0
    for current, op in graph.way(value, before, frozenset(_REDUCING)):
        size = math.prod(current.shape)
        if call is not None and op is not None and op.index == call.op and size == 1:
            return weight / call.facts.num_counted if call.facts.num_counted else None
        if op is None or op.name not in _REDUCING:
            return weight
        if len(op.inputs) != 1:
            return weight if size > 1 else None
        constant = op.args.get("other", 1)
        if not isinstance(constant, (int, float)) or not constant:
            return None
        if op.name == "mul":
            weight *= abs(constant)
        elif op.name == "div":
            weight /= abs(constant)
        elif op.name == "mean":
            weight *= size / math.prod(op.inputs[0].shape)
    return None

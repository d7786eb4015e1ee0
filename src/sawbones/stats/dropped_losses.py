"""Losses that are computed with gradients on and that no backward pass depends on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sawbones.schema import DeepStep, LossCall, Op
from sawbones.trace.graph import StepGraph


@dataclass(frozen=True, slots=True)
class DroppedLoss:
    call: LossCall
    layers: frozenset[str]  # those of the given ones that the loss comes from
    last: Op | None  # the last thing that was computed from it with gradients


def dropped_losses(deep: DeepStep, layers: Collection[str]) -> list[DroppedLoss]:
    """Those that come from one of these layers."""
    graph = StepGraph(deep)
    found = []
    for call in deep.losses:
        if call.facts.reaches_root is not False or not call.input.requires_grad:
            continue
        behind = {op.module for op in graph.behind(call.input, call.op)} & set(layers)
        made = graph.at(call.op)
        later = [*graph.after(made.outputs)] if made is not None else []
        kept = [op for op in later if any(v.requires_grad for v in op.outputs)]
        if behind:
            found.append(DroppedLoss(call, frozenset(behind), kept[-1] if kept else None))
    return found

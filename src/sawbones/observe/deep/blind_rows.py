"""Rows of a softmax in which a finite number hides every score: they look at everything alike."""

from __future__ import annotations

from typing import Any

import torch

from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.trace import RawOp

_HIDING = -1e4  # what hides a score in half precision; in full precision it is less still
_ALIKE = 1e-3  # of its size: what is left of the scores beside the number that hides them
_MAX_ELEMENTS = 1 << 24
_MAX_CALLS = 96


def find(graph: OpGraph, root: torch.Tensor) -> list[dict[str, Any]]:
    """How many rows of each call are hidden whole, and how many of those the loss depends on.
    Padded queries are hidden too, and nothing comes of them.
    """
    calls = [op for op in graph.ops if op.name == "softmax" and not op.silent][:_MAX_CALLS]
    looked = [(op, weights, hidden) for op in calls for weights, hidden in _hidden(op)]
    if not looked:
        return []
    gradients = torch.autograd.grad(
        root,
        [weights for _, weights, _ in looked],
        torch.ones_like(root),
        retain_graph=True,
        allow_unused=True,
    )
    found = []
    for (op, _, hidden), gradient in zip(looked, gradients, strict=True):
        moved = (gradient != 0).any(_dim(op)) & hidden if gradient is not None else hidden[:0]
        found.append(
            {
                "op": op.index,
                "site": op.site,
                "rows": hidden.numel(),
                "hidden": int(hidden.sum()),
                "counted": int(moved.sum()),
            }
        )
    return found


def _dim(op: RawOp) -> int:
    dim = op.args.get("dim")
    return dim if isinstance(dim, int) else -1


def _hidden(op: RawOp) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The weights, and which of their rows are hidden; nothing where none is."""
    scores = op.inputs[0].tensor() if op.inputs else None
    weights = op.outputs[0].tensor() if op.outputs else None
    if scores is None or weights is None or not weights.requires_grad:
        return []
    if scores.dim() < 2 or scores.numel() > _MAX_ELEMENTS or scores.shape[_dim(op)] < 2:
        return []
    low, high = torch.aminmax(scores.detach(), dim=_dim(op))
    hidden = torch.isfinite(low) & (high <= _HIDING) & (high - low <= _ALIKE * high.abs())
    return [(weights, hidden)] if bool(hidden.any()) else []

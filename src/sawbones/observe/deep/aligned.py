"""Labels of a CTC loss: which of those that count are the blank."""

from __future__ import annotations

from typing import Any

import torch

from sawbones.observe.deep.trace import RawOp
from sawbones.schema.loss import AlignedTargets


def aligned_targets(op: RawOp, target: torch.Tensor) -> AlignedTargets | None:
    """None where the lengths are not known: rows are padded, often with the blank."""
    labels = _within(target, _lengths(op))
    blank = op.args.get("blank", 0)
    if labels is None or not isinstance(blank, int):
        return None
    return AlignedTargets(blank, labels.numel(), int((labels == blank).sum()))


def _lengths(op: RawOp) -> torch.Tensor | None:
    named = op.arguments.get("target_lengths")
    if named is not None:
        return named.tensor()
    given: Any = op.args.get("target_lengths")
    return torch.tensor(given) if isinstance(given, tuple) else None


def _within(target: torch.Tensor, lengths: torch.Tensor | None) -> torch.Tensor | None:
    if target.dim() == 1:  # joined end to end
        return target if lengths is None or lengths.dim() else target[: int(lengths)]
    if lengths is None or target.dim() != 2 or lengths.numel() != len(target):
        return None
    places = torch.arange(target.shape[1], device=target.device)
    return target[places < lengths.to(target.device).reshape(-1, 1)]

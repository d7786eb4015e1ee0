"""Decoders written as a loop over time: one look-up per step. Together the look-ups are a sequence,
and its shift can be read.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from sawbones.observe.deep.losses import Found
from sawbones.observe.deep.roles import Source
from sawbones.observe.deep.shift import Frame, copy_shares
from sawbones.schema.loss import Stepwise

_FEWEST = 3
_ENOUGH = 0.5


def fill(loss: Found, frame: Frame, sources: list[Source], scores: torch.Tensor | None) -> None:
    """Adds copies, copied_at, copied_from and `stepwise` to the facts of a loss whose targets no
    whole input explains.
    """
    target = loss.target.tensor() if loss.target is not None else None
    if frame.source is not None or target is None or target.is_floating_point():
        return
    goal = frame.by_time(target.detach().reshape(-1).cpu())
    for group in _groups(sources, goal.shape[0]):
        ids = torch.stack([source.index.reshape(-1) for source in group], dim=1)
        # The trace keeps the first look-ups only.
        length = min(ids.shape[1], goal.shape[1])
        copies = copy_shares(
            goal[:, :length], ids[:, :length], frame.start, loss.facts.get("ignore_index"), None
        )
        best = max(copies, key=lambda k: (round(copies[k], 3), -abs(k)), default=None)
        if best is None or copies[best] < _ENOUGH:
            continue
        table = loss.facts.setdefault("shift", {})
        for k, share in copies.items():
            table.setdefault(k, {})["copies"] = share
        loss.facts["copied_at"] = best
        loss.facts["copied_from"] = sources.index(group[0])
        loss.facts["stepwise"] = Stepwise(
            tuple(sources.index(source) for source in group),
            length,
            _visible(frame, scores, group, length),
            group[0].op.site,
        )
        return


def _groups(sources: list[Source], batch: int) -> list[list[Source]]:
    """Look-ups of one id per example in the same table, in the order in which they were made."""
    tables: dict[int, list[Source]] = {}
    for source in sources:
        if source.index.numel() == batch and source.role == "tokens":
            table = source.op.arguments.get("weight") or source.op.inputs[0]
            tables.setdefault(table.id, []).append(source)
    return [group for group in tables.values() if len(group) >= _FEWEST]


def _visible(
    frame: Frame, scores: torch.Tensor | None, group: Sequence[Source], length: int
) -> bool | None:
    """Whether the scores of a step depend on that step's own look-up; None when the scores do not
    show time.
    """
    if (
        scores is None
        or scores.dim() != 3
        or tuple(scores.shape[:2]) != frame.shape
        or not scores.requires_grad
    ):
        return None
    step = length - 1
    at = scores[:, step] if frame.time_dim == 1 else scores[step]
    looked_up = group[step].output.tensor()
    if looked_up is None or not looked_up.requires_grad:
        return None
    with torch.enable_grad():
        total = at.square().sum()
    (gradient,) = torch.autograd.grad(total, [looked_up], retain_graph=True, allow_unused=True)
    return gradient is not None and bool((gradient != 0).any())

"""Loss calls: library functions and hand-written ones, and the properties of what they were
given.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn import functional as F

from sawbones.observe.deep.aligned import aligned_targets
from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.measure import listed
from sawbones.observe.deep.modules import Paths
from sawbones.observe.deep.trace import RawOp, Ref
from sawbones.observe.origins import library_built_at
from sawbones.schema import LossCall
from sawbones.schema.loss import LossFacts
from sawbones.trace.operators import LOSSES

_CHUNK = 1 << 24  # elements of the scores that are looked at in one piece
_MAX_LOSSES = 24
_MAX_PER_SAMPLE = 1024

CLASS_LOSSES = frozenset({"cross_entropy", "nll_loss", "multi_margin_loss"})


@dataclass
class Found:
    """A loss in the trace. `fn` is the library name, with "(by hand)" facts kept in `args`."""

    op: RawOp
    fn: str
    input: Ref
    target: Ref | None
    output: Ref
    class_dim: int | None = None
    args: dict[str, Any] = field(default_factory=dict)
    by_hand: bool = False
    facts: dict[str, Any] = field(default_factory=dict)  # of LossFacts
    value: float | None = None
    per_element: torch.Tensor | None = None  # loss of every target, flat, zero where ignored
    counted: torch.Tensor | None = None  # which of them count

    def record(self, paths: Paths) -> LossCall:
        op = self.op
        target = self.target.value() if self.target is not None else None
        return LossCall(
            op.index,
            self.fn,
            op.site,
            paths.of(op.module),
            self.input.value(),
            target,
            self.value,
            LossFacts(**self.facts),
        )


def find_library_losses(graph: OpGraph) -> list[Found]:
    found: list[Found] = []
    for op in graph.ops:
        if op.name not in LOSSES or op.silent or not op.outputs or len(found) >= _MAX_LOSSES:
            continue
        first = (
            op.arguments.get("input")
            or op.arguments.get("log_probs")
            or op.arguments.get("anchor")
            or op.arguments.get("input1")
        )
        if first is None and op.inputs:
            first = op.inputs[0]
        target = op.arguments.get("target") or op.arguments.get("targets")
        if first is None:
            continue
        loss = Found(op, op.name, first, target, op.outputs[0], args=dict(op.args))
        if op.name in CLASS_LOSSES:
            loss.class_dim = 1 if len(first.shape) > 1 else 0
        found.append(loss)
    return found


def describe(loss: Found, graph: OpGraph, root: Ref | None) -> None:
    """Fills `facts` with everything that needs only this loss: values, classes, targets,
    reduction.
    """
    facts = loss.facts
    facts["by_hand"] = loss.by_hand
    for source, name in (
        ("reduction", "reduction"),
        ("label_smoothing", "smoothing"),
        ("ignore_index", "ignore_index"),
    ):
        if source in loss.args:
            facts[name] = loss.args[source]
    _made_by(loss, graph)
    value = loss.output.tensor()
    if value is not None and value.numel() == 1:
        loss.value = float(value.detach())
    if root is not None:
        facts["reaches_root"] = loss.output.id == root.id or loss.op.index in {
            op.index
            for op in graph.behind(
                root, follow=lambda op: op.inputs if op.index >= loss.op.index else ()
            )
        }
    scores = loss.input.tensor()
    target = loss.target.tensor() if loss.target is not None else None
    if scores is None:
        return
    _input_range(loss, scores.detach())
    if target is None:
        return
    _targets(loss, target.detach())
    if loss.fn == "ctc_loss":
        facts["aligned"] = aligned_targets(loss.op, target.detach())
    facts["broadcast"] = (
        loss.class_dim is None
        and tuple(scores.shape) != tuple(target.shape)
        and loss.fn not in ("cosine_embedding_loss", "ctc_loss")
    )
    _weights(loss)
    loss.per_element, loss.counted = per_element(loss, scores.detach(), target.detach())
    if loss.per_element is not None and loss.counted is not None:
        _reduction(loss, root)
        if loss.per_element.numel() <= _MAX_PER_SAMPLE and "sequence_dim" not in facts:
            facts["per_sample"] = [round(v, 6) for v in listed(loss.per_element)]


def _made_by(loss: Found, graph: OpGraph) -> None:
    _, maker = graph.origin(loss.input, loss.op.index)
    loss.facts["input_made_by"] = maker.name if maker is not None else None
    loss.facts["input_made_at"] = maker.site if maker is not None else None
    loss.facts["input_built_at"] = library_built_at(maker.module) if maker is not None else None
    loss.facts["built_at"] = library_built_at(loss.op.module)
    if loss.target is not None:
        _, made = graph.origin(loss.target, loss.op.index)
        loss.facts["target_made_by"] = made.name if made is not None else None
        loss.facts["target_requires_grad"] = loss.target.requires_grad


def _input_range(loss: Found, scores: torch.Tensor) -> None:
    facts = loss.facts
    statistic = loss.input.statistic
    if statistic is not None and not statistic.filled:
        low, high = (
            float(v)
            for v in torch.aminmax(
                scores if scores.numel() <= _CHUNK else scores.reshape(-1)[:_CHUNK]
            )
        )
    else:
        low = statistic.min if statistic is not None and statistic.min is not None else math.nan
        high = statistic.max if statistic is not None and statistic.max is not None else math.nan
    facts["input_min"], facts["input_max"] = low, high
    facts["input_in_unit_interval"] = low >= 0.0 and high <= 1.0
    dim = (
        loss.class_dim
        if loss.class_dim is not None
        else (scores.dim() - 1 if scores.dim() > 1 else None)
    )
    if dim is None or scores.shape[dim] < 2:
        return
    if loss.class_dim is not None or loss.fn == "kl_div":
        facts["num_classes"], facts["class_dim"] = scores.shape[dim], dim
    some = scores.movedim(dim, -1)
    some = some.reshape(-1, some.shape[-1])[:1024].float()
    sums = some.sum(-1)
    facts["input_is_probability"] = bool(
        low >= 0.0 and torch.allclose(sums, torch.ones_like(sums), atol=2e-3)
    )
    mass = some.double().logsumexp(-1)
    facts["input_is_log_probability"] = bool(
        high <= 1e-6 and torch.allclose(mass, torch.zeros_like(mass), atol=2e-3)
    )


def _targets(loss: Found, target: torch.Tensor) -> None:
    facts = loss.facts
    flat = target.reshape(-1)
    facts["target_num"] = flat.numel()
    facts["target_is_index"] = not target.is_floating_point() and loss.class_dim is not None
    if flat.numel() == 0:
        return
    low, high = torch.aminmax(flat.to(torch.float32) if target.dtype == torch.bool else flat)
    facts["target_min"], facts["target_max"] = float(low), float(high)
    whole = not target.is_floating_point() or bool((flat[:65536] == flat[:65536].round()).all())
    facts["target_is_whole"] = whole
    if whole:
        values, counts = torch.unique(flat, return_counts=True)
        order = torch.argsort(counts, descending=True)[:64]
        pairs = zip(listed(values[order]), listed(counts[order]), strict=True)
        facts["target_counts"] = {int(v): int(c) for v, c in pairs if math.isfinite(v)}
        facts["target_num_values"] = int(values.numel())
    classes = facts.get(
        "class_dim", 1 if target.dim() == 2 and loss.fn.startswith("binary") else None
    )
    if (
        target.is_floating_point()
        and isinstance(classes, int)
        and tuple(target.shape) == loss.input.shape
    ):
        sums = (target.exp() if loss.args.get("log_target") else target).sum(classes)
        facts["target_row_sum"] = [float(sums.min()), float(sums.max())]
    facts["same_for_all"] = _same_for_all(loss, target)
    ignore = facts.get("ignore_index")
    if ignore is not None and facts["target_is_index"]:
        facts["target_ignored_share"] = float((flat == ignore).float().mean())


def _same_for_all(loss: Found, target: torch.Tensor) -> float | None:
    """Of rows of numbers (a picture each), with the rows at hand as a sample of all."""
    rows = len(target) if target.dim() > 1 else 0
    whole = tuple(target.shape) == loss.input.shape and target.is_floating_point()
    if rows < _LEAST_ROWS or not whole or loss.class_dim is not None:
        return None
    flat = target.detach().float().flatten(1)
    mean = flat.mean(0)
    if loss.fn == "mse_loss":
        return float(flat.var(0).mean())
    if loss.fn.startswith("binary") and float(flat.min()) >= 0 and float(flat.max()) <= 1:
        return float(F.binary_cross_entropy(mean.clamp(0, 1).expand_as(flat), flat))
    return None


def _weights(loss: Found) -> None:
    weight = loss.op.arguments.get("weight") or loss.op.arguments.get("pos_weight")
    values = weight.tensor() if weight is not None and not loss.by_hand else None
    loss.facts["has_weight"] = values is not None
    if values is not None and values.numel() <= 256:
        loss.facts["weight"] = listed(values.detach().float().reshape(-1))


_LEAST_ROWS = 16  # of a batch whose mean is to stand for that of all rows
_ELEMENTWISE: dict[str, Callable[..., torch.Tensor]] = {
    "mse_loss": F.mse_loss,
    "l1_loss": F.l1_loss,
    "smooth_l1_loss": F.smooth_l1_loss,
    "huber_loss": F.huber_loss,
    "binary_cross_entropy_with_logits": F.binary_cross_entropy_with_logits,
    "kl_div": F.kl_div,
    "binary_cross_entropy": F.binary_cross_entropy,
    "poisson_nll_loss": F.poisson_nll_loss,
}


def class_rows(loss: Found, scores: torch.Tensor) -> torch.Tensor:
    """The scores as (targets, classes)."""
    dim = loss.class_dim if loss.class_dim is not None else -1
    return scores.movedim(dim, -1).reshape(-1, scores.shape[dim])


def per_element(
    loss: Found, scores: torch.Tensor, target: torch.Tensor
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """The loss of every target without weights and smoothing, and which targets count."""
    if loss.class_dim is not None and not target.is_floating_point():
        rows, flat = class_rows(loss, scores), target.reshape(-1).long()
        if rows.shape[0] != flat.numel():
            return None, None
        counted = (flat >= 0) & (flat < rows.shape[1])
        ignore = loss.facts.get("ignore_index")
        if ignore is not None:
            counted &= flat != ignore
        safe = torch.where(counted, flat, torch.zeros_like(flat))
        values, right = [], 0
        step = max(1, _CHUNK // max(rows.shape[1], 1))
        for start in range(0, rows.shape[0], step):
            part = rows[start : start + step].float()
            logs = part if loss.fn == "nll_loss" else part.log_softmax(-1)
            chosen = safe[start : start + step]
            values.append(-logs.gather(1, chosen[:, None])[:, 0])
            right += int(((part.argmax(-1) == chosen) & counted[start : start + step]).sum())
        loss.facts["accuracy"] = right / max(int(counted.sum()), 1)
        found = torch.cat(values) if values else rows.new_zeros(0)
        return torch.where(counted, found, torch.zeros_like(found)), counted
    function = _ELEMENTWISE.get(loss.fn)
    if function is None:
        if loss.class_dim is not None and target.shape == scores.shape:
            logs = scores.float().log_softmax(loss.class_dim)
            loss.facts["accuracy"] = float(
                (scores.argmax(loss.class_dim) == target.argmax(loss.class_dim)).float().mean()
            )
            found = -(logs * target.float()).sum(loss.class_dim).reshape(-1)
            return found, torch.ones_like(found, dtype=torch.bool)
        return None, None
    options = {
        k: loss.args[k]
        for k in ("beta", "delta", "log_target", "log_input", "full")
        if k in loss.args
    }
    wide, goal = torch.broadcast_tensors(scores.float(), target.float())
    found = function(wide, goal, reduction="none", **options).reshape(-1)
    if loss.fn.startswith("binary"):
        cut = 0.0 if loss.fn.endswith("logits") else 0.5
        loss.facts["accuracy"] = float(((wide > cut) == (goal > 0.5)).float().mean())
    return found, torch.ones_like(found, dtype=torch.bool)


def _reduction(loss: Found, root: Ref | None) -> None:
    """What the elements were really reduced by, from values: a mean, a sum, or a mean over only a
    part.
    """
    assert loss.per_element is not None and loss.counted is not None
    facts = loss.facts
    total = float(loss.per_element.double().sum())
    count = int(loss.counted.sum())
    mean = total / count if count else math.nan
    facts["mean_of_elements"], facts["num_counted"] = mean, count
    value = loss.value
    root_value = root.tensor() if root is not None else None
    if value is None and root_value is not None and root_value.numel() == 1:
        value = float(root_value.detach())  # reduction "none", reduced by hand afterwards
    if (
        value is None
        or not math.isfinite(value)
        or not math.isfinite(mean)
        or mean == 0
        or count == 0
    ):
        return
    facts["value_over_mean"] = value / mean
    if count == 1 or math.isclose(value, mean, rel_tol=0.02):
        effective = "mean"
    elif math.isclose(value, total, rel_tol=0.02):
        effective = "sum"
    else:
        effective = "other"
    facts["effective_reduction"] = effective
    if loss.by_hand or "reduction" not in facts:
        facts["reduction"] = effective
    if root_value is not None and root_value.numel() == 1:
        facts["root_over_mean"] = float(root_value.detach()) / mean


def main_loss(losses: list[Found]) -> Found | None:
    """The loss that carries the step: it reaches the backward, and is over most targets."""
    reaching = [loss for loss in losses if loss.facts.get("reaches_root", True)]
    if not reaching:
        return None
    chosen = max(
        reaching,
        key=lambda loss: (
            loss.class_dim is not None,
            loss.target is not None,
            loss.facts.get("target_num", 0),
        ),
    )
    chosen.facts["main"] = True
    return chosen

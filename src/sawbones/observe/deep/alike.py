"""Whether the scores that a loss is given differ from sample to sample, and where they stop to."""

from __future__ import annotations

from typing import Any

import torch

from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.losses import Found
from sawbones.observe.deep.trace import RawOp, Ref

_FEWEST = 4  # samples
_MAX_VALUES = 1 << 20
_REDUCED = (torch.float32, torch.float64, torch.int64, torch.int32)  # as they are


def measure(graph: OpGraph, loss: Found) -> dict[str, Any] | None:
    """None where scores, targets and inputs have no row per sample."""
    scores, target = _plain(loss.input), _plain(loss.target)
    if scores is None or target is None or scores.shape[0] != target.shape[0]:
        return None
    rows = scores.shape[0]
    behind = sorted(graph.behind(loss.input, loss.op.index), key=lambda op: op.index)
    data = {
        id(ref): ref  # what several operators read is looked at once
        for op in behind
        for ref in op.inputs
        if not ref.is_parameter and not ref.requires_grad
    }
    given = [s for ref in data.values() if (s := _spread_of(ref, rows)) is not None]
    found: dict[str, Any] = {
        "rows": rows,
        "spread": _spread(scores),
        "scale": float(scores.abs().max()),
        "targets": _spread(target),
        "inputs": max(given, default=0.0),
    }
    if found["spread"] <= _rounding(scores):
        lost = next((op for op in behind if _makes_alike(op, rows)), None)
        if lost is not None:
            found["op"], found["site"] = lost.name, lost.site
    return found


def _makes_alike(op: RawOp, rows: int) -> bool:
    """Its results are the same for all samples although what went in was not."""
    given = [s for ref in op.inputs if (s := _spread_of(ref, rows)) is not None]
    made = _plain(op.outputs[0]) if op.outputs else None
    if made is None or made.shape[0] != rows or not any(given):
        return False
    return _spread(made) <= _rounding(made)


def _spread_of(ref: Ref, rows: int) -> float | None:
    """The same as _spread, from the extremes of each column: without copies of all values."""
    tensor = _readable(ref)
    if tensor is None or tensor.shape[0] != rows:
        return None
    if tensor.dtype not in _REDUCED:
        tensor = tensor.double()
    low, high = (extreme.double() for extreme in torch.aminmax(tensor, dim=0))
    if not bool((torch.isfinite(low) & torch.isfinite(high)).all()):
        return None
    first = tensor[0].double()
    return float(torch.maximum(high - first, first - low).max())


def _spread(tensor: torch.Tensor) -> float:
    return float((tensor - tensor[:1]).abs().max())


def _rounding(tensor: torch.Tensor) -> float:
    return 4 * torch.finfo(torch.float32).eps * float(tensor.abs().max())


def _plain(ref: Ref | None) -> torch.Tensor | None:
    """Its values, a row per sample; None where not all of them are finite."""
    tensor = _readable(ref)
    values = tensor.double() if tensor is not None else None
    return values if values is not None and bool(torch.isfinite(values).all()) else None


def _readable(ref: Ref | None) -> torch.Tensor | None:
    tensor = ref.tensor() if ref is not None else None
    if tensor is None or tensor.device.type != "cpu" or tensor.is_complex() or not tensor.dim():
        return None
    if tensor.layout is not torch.strided or not tensor.shape[0] >= _FEWEST:
        return None
    if not 0 < tensor.numel() <= _MAX_VALUES:
        return None
    return tensor.detach()

"""Whether a module is a copy of the model that was trained: reloaded, exported, averaged, cast,
quantised.
"""

from __future__ import annotations

import torch
from torch import nn

from sawbones.schema.populations import Likeness


def likeness(trained: nn.Module, other: nn.Module) -> Likeness | None:
    """None for the trained model itself."""
    if other is trained:
        return None
    ours = dict(trained.named_parameters())
    theirs = dict(other.named_parameters())
    kind = _kind(other)
    if kind == "quantised" or not theirs:
        layers = {name for name, m in trained.named_modules() if any(m._parameters.values())}
        known = {name for name, _ in other.named_modules()}
        shared = len(layers & known) / max(len(layers), 1)
        return Likeness(type(other).__name__, shared, None, None, None, kind)
    same = [
        name
        for name, p in ours.items()
        if (q := theirs.get(name)) is not None and q.shape == p.shape and q.device == p.device
    ]
    shared = len(same) / max(len(ours), 1)
    distance = _distance([(ours[n], theirs[n]) for n in same])
    mine, yours = dict(trained.named_buffers()), dict(other.named_buffers())
    kept = [
        (mine[n], yours[n])
        for n in mine
        if n in yours and mine[n].is_floating_point() and mine[n].shape == yours[n].shape
    ]
    return Likeness(
        type(other).__name__,
        shared,
        distance,
        cosine_of([(ours[n], theirs[n]) for n in same if ours[n].dim() > 1]),
        _distance(kept) if kept else None,
        kind,
    )


def is_quantised(module: nn.Module) -> bool:
    """Layers of torch's own quantisation, which hold their weights packed, not as parameters."""
    return any("quantized" in type(m).__module__ for m in module.modules())


def _kind(module: nn.Module) -> str:
    if isinstance(module, torch.jit.ScriptModule):
        return "scripted"
    if is_quantised(module):
        return "quantised"
    return "exported" if isinstance(module, torch.fx.GraphModule) else "copy"


def _distance(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> float | None:
    if not pairs:
        return None
    with torch.no_grad():
        apart = sum(float((a.double() - b.double()).square().sum()) for a, b in pairs)
        size = sum(float(a.double().square().sum()) for a, _ in pairs)
    return (apart / size) ** 0.5 if size else None


def cosine_of(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> float | None:
    with torch.no_grad():
        both = sum(float((a.double() * b.double()).sum()) for a, b in pairs)
        ours = sum(float(a.double().square().sum()) for a, _ in pairs)
        theirs = sum(float(b.double().square().sum()) for _, b in pairs)
    return both / (ours * theirs) ** 0.5 if ours and theirs else None

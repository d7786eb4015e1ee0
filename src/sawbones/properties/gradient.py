"""Is a gradient the derivative of its function? Autograd against central differences in float64.

Small inputs are varied coordinate by coordinate, large ones along a few random directions at once,
so the cost is a few dozen calls whatever the size. A gradient may differ on purpose: then the
function passes its input through unchanged (gradient reversal, gradient scaling), or is flat almost
everywhere (rounding with a straight-through estimate). Both are measured, too, so that whoever
reads the numbers can tell.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn

from sawbones.properties.inputs import mapped, tensors_in

STEP = 1e-6  # balances curvature (h squared) against rounding (1e-16 / h) for values around 1
FEW_COORDINATES = 48  # up to that many numbers each is varied by itself
DIRECTIONS = 6
MOST_NUMBERS = 20_000_000
FLOOR = 1e-3  # of the steepest slope: flatter ones are known only to that share of it


@dataclass(frozen=True)
class Slopes:
    """The worst of the slopes that were compared."""

    error: float  # relative
    autograd: float
    differences: float
    compared: int  # coordinates or directions
    kink: bool  # the slopes on both sides differ: the point lies on an edge of the function
    passes_through: bool  # the output is the input
    flat: bool  # no direction changes the output

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class CannotVary(ValueError):
    """Nothing of the call can be varied, and why."""


def compare(function: Callable[..., Any], given: Any, held: nn.Module | None) -> Slopes:
    """`function(*args, **kwargs)`, or with a copy of `held` before them; given = (args, kwargs)."""
    generator = torch.Generator().manual_seed(0)
    model = copy.deepcopy(held).double().eval() if held is not None else None
    args, kwargs = _wide(given)
    inputs = [t for t in tensors_in((args, kwargs)) if t.is_floating_point()]
    weights = [p for p in model.parameters() if p.requires_grad] if model is not None else []
    moving = [t for t in inputs if t.numel()] + weights
    if not moving:
        raise CannotVary("it is given no real numbers")
    if sum(t.numel() for t in moving) > MOST_NUMBERS:
        raise CannotVary("it is given too many numbers")
    first = [model] if model is not None else []

    def outputs() -> list[torch.Tensor]:
        result = function(*first, *args, **kwargs)
        return [t for t in tensors_in(result) if t.is_floating_point()]

    for tensor in moving:
        tensor.requires_grad_(True)
    with torch.enable_grad():
        made = outputs()
        if not made or any(t.dtype != torch.float64 for t in made):
            raise CannotVary("its output is not in float64 where its input is")
        upstream = [
            torch.randn(t.shape, generator=generator, dtype=torch.float64).to(t.device)
            for t in made
        ]
        root = _weighed(made, upstream)
        if not root.requires_grad:
            raise CannotVary("its output has no gradient")
        gradients = torch.autograd.grad(root, moving, allow_unused=True)
    passes = any(t.shape == x.shape and torch.equal(t, x) for t in made for x in inputs)
    with torch.no_grad():
        rows = [
            (_along(gradients, way), *_differences(outputs, upstream, moving, way))
            for way in _ways(moving, generator)
        ]
    return _worst(rows, passes)


def _worst(rows: Sequence[tuple[float, float, float, float]], passes: bool) -> Slopes:
    scale = max(abs(slope) for _, slope, _, _ in rows)
    worst = (-1.0, 0.0, 0.0, False)
    for autograd, slope, left, right in rows:
        size = max(abs(autograd), abs(slope), FLOOR * scale, 1e-12)
        kink = abs(left - right) > 1e-2 * size
        error = abs(autograd - slope) / size
        if error > worst[0] and not (kink and worst[0] >= 0):
            worst = (error, autograd, slope, kink)
    return Slopes(worst[0], worst[1], worst[2], len(rows), worst[3], passes, scale < 1e-9)


def _ways(moving: Sequence[torch.Tensor], generator: torch.Generator) -> Iterator[list[Any]]:
    """Directions to vary along: single coordinates of a small call, random ones of a large one."""
    if sum(t.numel() for t in moving) <= FEW_COORDINATES:
        for place, tensor in enumerate(moving):
            for index in range(tensor.numel()):
                way: list[Any] = [None] * len(moving)
                way[place] = torch.zeros(tensor.numel(), dtype=torch.float64)
                way[place][index] = 1.0
                way[place] = way[place].reshape(tensor.shape).to(tensor.device)
                yield way
        return
    for _ in range(DIRECTIONS):
        yield [
            torch.randn(t.shape, generator=generator, dtype=torch.float64).to(t.device)
            for t in moving
        ]


def _along(gradients: Sequence[torch.Tensor | None], way: Sequence[Any]) -> float:
    pairs = zip(gradients, way, strict=True)
    return float(sum(float((g * d).sum()) for g, d in pairs if g is not None and d is not None))


def _differences(
    outputs: Callable[[], list[torch.Tensor]],
    upstream: Sequence[torch.Tensor],
    moving: Sequence[torch.Tensor],
    way: Sequence[Any],
) -> tuple[float, float, float]:
    """(central, left, right) difference quotients."""
    starts = [t.detach().clone() for t in moving]

    def at(distance: float) -> float:
        for tensor, start, direction in zip(moving, starts, way, strict=True):
            if direction is not None:
                tensor.copy_(start + distance * direction)
        return float(_weighed(outputs(), upstream))

    low, middle, high = at(-STEP), at(0.0), at(STEP)
    at(0.0)
    return (high - low) / (2 * STEP), (middle - low) / STEP, (high - middle) / STEP


def _weighed(made: Sequence[torch.Tensor], upstream: Sequence[torch.Tensor]) -> torch.Tensor:
    parts = [(t.double() * w).sum() for t, w in zip(made, upstream, strict=True)]
    return torch.stack(parts).sum()


def _wide(value: Any) -> Any:
    """A copy in float64 that has no history."""
    return mapped(
        value, lambda t: t.detach().double().clone() if t.is_floating_point() else t.detach()
    )

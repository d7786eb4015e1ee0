"""Is a gradient the derivative of its function? Autograd against central differences in float64.

Every coordinate of a small tensor is varied by itself, a large one along several random directions,
so the cost is some hundred calls whatever the size. How far the slopes to the left and to the right
are apart says how well the slope is known at all: an edge of the function nearby is no mistake.
Inputs that ask for no gradient (targets, masks, a fixed adjacency) are constants, as for
torch.autograd.gradcheck: a backward may return None for them. A gradient may differ on purpose: then
the function passes its input through unchanged (gradient reversal, gradient scaling), or is flat
almost everywhere (rounding with a straight-through estimate). Both are measured, too, so that
whoever reads the numbers can tell.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from sawbones.properties.inputs import mapped, tensors_in

STEP = 1e-6  # balances curvature (h squared) against rounding (1e-16 / h) for values around 1
FEW_COORDINATES = 48  # of one tensor: up to that many numbers each is varied by itself
MOST_COORDINATES = 96  # of all tensors of a call; behind them a small one is taken for a large one
DIRECTIONS = 6  # of everything at once
DIRECTIONS_EACH = 2  # of each large tensor
MOST_TENSORS = 24  # that are varied by themselves
MOST_NUMBERS = 20_000_000
FLOOR = 1e-3  # of the steepest slope: flatter ones are known only to that share of it


@dataclass(frozen=True)
class Slopes:
    """The worst of the slopes that were compared."""

    error: float  # relative
    autograd: float
    differences: float
    compared: int  # coordinates or directions
    unsure: float  # relative: slopes on both sides that are apart, and rounding of large sums
    kink: bool  # the slopes on both sides differ: the point lies on an edge of the function
    passes_through: bool  # the output is the input
    flat: bool  # no direction changes the output


class CannotVary(ValueError):
    """Nothing of the call can be varied, and why."""


def compare(function: Callable[..., Any], given: Any, held: nn.Module | None) -> Slopes:
    """`function(*args, **kwargs)`, or with a copy of `held` before them; given = (args, kwargs).
    Varied are the parameters of `held` and the inputs that ask for a gradient; all real inputs where
    neither is there.
    """
    generator = torch.Generator().manual_seed(0)
    model = copy.deepcopy(held).double().eval() if held is not None else None
    args, kwargs = _wide(given)
    inputs = [t for t in tensors_in((args, kwargs)) if _can_vary(t)]
    asked = [was.requires_grad for was in tensors_in(given) if _can_vary(was)]
    weights = [p for p in model.parameters() if p.requires_grad] if model is not None else []
    wanted = [t for t, asks in zip(inputs, asked, strict=True) if asks] + weights
    moving = wanted or inputs
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
        summed = sum(float((t * w).abs().sum()) for t, w in zip(made, upstream, strict=True))
    return _worst(rows, passes, torch.finfo(torch.float64).eps * summed / STEP)


def _can_vary(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and tensor.layout == torch.strided and tensor.numel() > 0


def _worst(
    rows: Sequence[tuple[float, float, float, float]], passes: bool, rounding: float
) -> Slopes:
    scale = max(abs(slope) for _, slope, _, _ in rows)
    worst = (-1.0, 0.0, 0.0, False, 0.0)
    for autograd, slope, left, right in rows:
        size = max(abs(autograd), abs(slope), FLOOR * scale, 1e-12)
        unsure = (abs(left - right) + rounding) / size
        kink = abs(left - right) > 1e-2 * size
        error = abs(autograd - slope) / size
        # One that is off by less than is known of it says nothing as long as there is another.
        beyond = error - unsure > worst[0] - worst[4]
        if worst[0] < 0 or (beyond and not kink):
            worst = (error, autograd, slope, kink, unsure)
    error, autograd, slope, kink, unsure = worst
    return Slopes(error, autograd, slope, len(rows), unsure, kink, passes, scale < 1e-9)


def _ways(moving: Sequence[torch.Tensor], generator: torch.Generator) -> Iterator[list[Any]]:
    """Directions to vary along: every coordinate of small tensors, random ones of large ones, each
    by itself and all at once.
    """
    left = MOST_COORDINATES
    alone = 0
    for place, tensor in enumerate(moving):
        if tensor.numel() <= min(FEW_COORDINATES, left):
            left -= tensor.numel()
            for index in range(tensor.numel()):
                step = torch.zeros(tensor.numel(), dtype=torch.float64)
                step[index] = 1.0
                yield _only(moving, place, step)
        elif alone < MOST_TENSORS:
            alone += 1
            for _ in range(DIRECTIONS_EACH):
                random = torch.randn(tensor.numel(), generator=generator, dtype=torch.float64)
                yield _only(moving, place, random)
    if len(moving) > 1 or alone:
        for _ in range(DIRECTIONS):
            yield [
                torch.randn(t.shape, generator=generator, dtype=torch.float64).to(t.device)
                for t in moving
            ]


def _only(moving: Sequence[torch.Tensor], place: int, step: torch.Tensor) -> list[Any]:
    way: list[Any] = [None] * len(moving)
    way[place] = step.reshape(moving[place].shape).to(moving[place].device)
    return way


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

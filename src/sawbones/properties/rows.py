"""Whether each answer of a batch belongs to the example in the same place, seen by giving a model
its examples in another order, and one of them another content.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

FEWEST = 4
_SAME = 1e-4  # of the answers' spread: what another order of adding up does in float32


@dataclass(frozen=True)
class RowOrder:
    """Of a batch whose examples are all given one place further on."""

    examples: int
    moved_along: float  # share of the answers that move with their example
    found_again: float  # share of the answers that are those of some example


def order_of_answers(answer: Callable[[Tensor], Tensor], num: int) -> RowOrder | None:
    """`answer` gives the answers for the examples in an order, example by example. None where the
    answers of several examples are the same, so that nothing tells them apart.
    """
    order = torch.arange(num).roll(1)
    before, now = (answer(o).flatten(1).double() for o in (torch.arange(num), order))
    limit = _SAME * float(before.std()) * before.shape[1] ** 0.5
    apart = torch.cdist(before, before).fill_diagonal_(float("inf")).amin(1)
    if num < FEWEST or before.shape != now.shape or not bool((apart > 4 * limit).all()):
        return None
    away = torch.cdist(now, before)
    own = away[torch.arange(num), order]
    return RowOrder(
        num, float((own <= limit).double().mean()), float((away.amin(1) <= limit).double().mean())
    )


def moved_by_another(answer: Callable[[Tensor], Tensor], num: int) -> float:
    """How far the answers for the others move when the last example becomes a second first one, as
    a share of the answers' size.
    """
    order = torch.arange(num)
    before = answer(order)
    order[-1] = 0
    now = answer(order)
    others = slice(0, num - 1)
    moved = (now[others] - before[others]).norm() / (before[others].norm() + 1e-12)
    return float(moved)

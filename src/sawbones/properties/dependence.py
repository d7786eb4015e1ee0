"""What a model's outputs depend on, seen by giving it other input: later positions, other examples,
the order of the positions, padding.

Inputs are (batch, time, ...), `answer` gives the outputs for other input, and `base` are those for
the input itself. Each function says which outputs are compared; how far they may move is the
caller's question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Answer = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Moved:
    """Outputs for the changed input beside those that they are compared with."""

    now: Tensor
    expected: Tensor

    def relative(self) -> float:
        """Distance as a share of the size of what was expected."""
        return float((self.now - self.expected).norm() / (self.expected.norm() + 1e-12))

    def furthest(self, dims: int) -> Tensor:
        """The largest move at each place of the first `dims` dimensions."""
        return (self.now - self.expected).abs().flatten(dims).amax(-1)


def by_later_positions(
    answer: Answer, given: Tensor, other: Tensor, base: Tensor, cut: int
) -> tuple[Moved, Moved]:
    """Inputs from position `cut` on are changed: outputs before it, and from it on."""
    now = answer(torch.cat([given[:, :cut], other[:, cut:]], 1))
    return Moved(now[:, :cut], base[:, :cut]), Moved(now[:, cut:], base[:, cut:])


def by_one_example(
    answer: Answer, given: Tensor, other: Tensor, base: Tensor, example: int
) -> tuple[Moved, Moved]:
    """One example is changed: the outputs for the others in order, and its own."""
    changed = given.clone()
    changed[example] = other[example]
    now = answer(changed)
    others = [n for n in range(len(given)) if n != example]
    return Moved(now[others], base[others]), Moved(now[[example]], base[[example]])


def by_order(answer: Answer, given: Tensor, base: Tensor, order: Tensor) -> Moved:
    """Positions are permuted: the outputs beside the permuted ones, equal where order is ignored."""
    return Moved(answer(given[:, order.to(given.device)]), base[:, order.to(base.device)])


def by_padding(alone: Tensor, base: Tensor, example: int, kept: Tensor | None) -> Moved:
    """One example is given alone without its padding: its answer beside that in the padded batch.
    `kept` are its real positions, where outputs are per position.
    """
    before = base[example]
    return Moved(alone[0], before if kept is None else before[kept.to(before.device)])

"""Gradient marks: which gradients still hold what an optimizer's last step used, told without
reading a value.

After a step every gradient is marked with its identity and version. Setting it to None, zeroing it
or replacing it breaks the mark at the next backward pass; accumulation by a backward pass renews
it. A mark that lasts until the same optimizer steps again was never cleared in between, whatever
other optimizers and other losses did meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

# parameters of an optimizer, evenly spread: clearing treats them all alike, or a module of them
MARKED = 8

_Mark = tuple[torch.Tensor, int, int]  # parameter, identity and version of its gradient
_Grad = tuple[int, int] | None  # identity and version


class GradientMarks:
    def __init__(self, marked: int | None = None) -> None:
        """`marked`: of more parameters than that only so many are looked at, and what is counted is
        scaled up.
        """
        self._marked = marked
        self._every: dict[int, int] = {}  # one in so many parameters of an optimizer
        self._marks: dict[int, list[_Mark]] = {}
        self._backwards: dict[int, int] = {}  # passes since the optimizer's last step
        self._thrown: dict[
            int, tuple[torch.Tensor, _Grad]
        ] = {}  # parameters whose gradient was cleared before any step used it
        self._zeros: dict[int, _Grad] = {}  # gradients that were set to zero and not to None

    def stepped(self, optimizer: int, params: Sequence[torch.Tensor]) -> None:
        every = 1 if self._marked is None else -(-len(params) // self._marked) or 1
        self._every[optimizer] = every
        looked_at = params if every == 1 else params[::every]
        self._marks[optimizer] = [
            (p, id(g), g._version) for p in looked_at if (g := p.grad) is not None
        ]
        self._backwards[optimizer] = 0
        for p in params if self._thrown else ():
            self._thrown.pop(id(p), None)

    def backward_begins(self) -> int:
        """Drops what was cleared; returns how many marks are left."""
        for optimizer, marks in self._marks.items():
            self._backwards[optimizer] += 1
            if marks:
                self._marks[optimizer] = [
                    m
                    for m in marks
                    if (g := m[0].grad) is not None and id(g) == m[1] and g._version == m[2]
                ]
        return sum(len(marks) * self._every[optimizer] for optimizer, marks in self._marks.items())

    def backward_ends(self) -> None:
        for optimizer, marks in self._marks.items():
            if marks:
                self._marks[optimizer] = [
                    (p, i, p.grad._version)
                    for p, i, _ in marks
                    if p.grad is not None and id(p.grad) == i
                ]

    def forget(self) -> None:
        self._marks.clear()
        self._backwards.clear()

    def uncleared(self, optimizer: int) -> int:
        """Gradients that this optimizer is about to use for a second time."""
        if not self._backwards.get(optimizer):
            return 0
        # gradients of master copies are handed over after the backward pass: what was marked is no
        # longer what is used
        return (
            sum(id(p.grad) == i for p, i, _ in self._marks.get(optimizer, ()))
            * self._every[optimizer]
        )

    def unused(self, params: Iterable[torch.Tensor]) -> list[torch.Tensor]:
        """Those that hold a gradient which no step has used."""
        used = {i: version for marks in self._marks.values() for _, i, version in marks}
        held = [p for p in params if (g := p.grad) is not None and used.get(id(g)) != g._version]
        return [p for p in held if self._zeros.get(id(p)) != _grad(p)]

    def cleared(self, params: Iterable[torch.Tensor], unused: Iterable[torch.Tensor]) -> None:
        self._zeros.update({id(p): _grad(p) for p in params if p.grad is not None})
        self._thrown.update({id(p): (p, _grad(p)) for p in unused})

    def lost(self, params: Iterable[torch.Tensor]) -> int:
        """Parameters that had a gradient of their own since the last step, lost it, and got no
        other.
        """
        return (
            sum(
                id(p) in self._thrown and _grad(p) in (None, self._thrown[id(p)][1]) for p in params
            )
            if self._thrown
            else 0
        )


def _grad(p: torch.Tensor) -> _Grad:
    return (id(p.grad), p.grad._version) if p.grad is not None else None

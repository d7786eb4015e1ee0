"""Gradient marks: which gradients still hold what an optimizer's last step used, told without reading a value.

After a step every gradient is marked with its identity and version. Setting it to None, zeroing it or replacing it breaks the
mark at the next backward pass; accumulation by a backward pass renews it. A mark that lasts until the same optimizer steps
again was never cleared in between, whatever other optimizers and other losses did meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

_Mark = tuple[torch.Tensor, int, int]  # parameter, identity and version of its gradient


class GradientMarks:
    def __init__(self) -> None:
        self._marks: dict[int, list[_Mark]] = {}
        self._backwards: dict[int, int] = {}  # passes since the optimizer's last step

    def stepped(self, optimizer: int, params: Iterable[torch.Tensor]) -> None:
        self._marks[optimizer] = [(p, id(g), g._version) for p in params if (g := p.grad) is not None]
        self._backwards[optimizer] = 0

    def backward_begins(self) -> int:
        """Drops what was cleared; returns how many marks are left."""
        for optimizer, marks in self._marks.items():
            self._backwards[optimizer] += 1
            if marks:
                self._marks[optimizer] = [m for m in marks if (g := m[0].grad) is not None and id(g) == m[1] and g._version == m[2]]
        return sum(map(len, self._marks.values()))

    def backward_ends(self) -> None:
        for optimizer, marks in self._marks.items():
            if marks:
                self._marks[optimizer] = [(p, i, p.grad._version) for p, i, _ in marks if p.grad is not None and id(p.grad) == i]

    def uncleared(self, optimizer: int) -> int:
        """Gradients that this optimizer is about to use for a second time."""
        return len(self._marks.get(optimizer, ())) if self._backwards.get(optimizer) else 0

"""Which steps' graphs are still alive long after their backward pass, and which line keeps them.

A mark in the metadata of the loss's own graph node lives exactly as long as the node does, whoever holds it.
"""

from __future__ import annotations

import weakref
from collections import Counter, deque
from typing import Any

import torch

_OLD = 12  # steps: the observer itself may hold the last few losses
_MARKED_IN_FULL = 300
_MAX_RESULTS = 400


class _Mark:
    __slots__ = ("__weakref__",)


class KeptGraphs:
    """`record` is what a run keeps: made, kept, series [step, kept], sites [[site, votes]]."""

    def __init__(self) -> None:
        self._marks: deque[tuple[int, weakref.ref[_Mark]]] = deque(maxlen=2000)
        self._outputs: deque[tuple[int, weakref.ref[_Mark]]] = deque(maxlen=2000)
        self._results: list[tuple[int, Any, weakref.ref[torch.Tensor]]] = []
        self._iteration = 0
        self._votes: Counter[Any] = Counter()
        self.record: dict[str, Any] = {"made": 0, "kept": 0, "series": [], "sites": []}

    def made(self, loss: Any, step: int) -> None:
        """A backward pass begins."""
        self._vote()
        self._mark(loss, step, self._marks)

    def output(self, tensor: Any, step: int) -> None:
        self._mark(tensor, step, self._outputs)

    def _mark(self, tensor: Any, step: int, marks: deque[tuple[int, weakref.ref[_Mark]]]) -> None:
        node = getattr(tensor, "grad_fn", None)
        if node is None or (step >= _MARKED_IN_FULL and step % 10) or "sawbones" in node.metadata:
            return
        mark = _Mark()
        node.metadata["sawbones"] = mark
        marks.append((step, weakref.ref(mark)))

    def model_called(self) -> None:
        """What was made before this call belongs to the iteration before."""
        self._iteration += 1

    def result(self, tensor: torch.Tensor, site: Any) -> None:
        """The loop itself, outside of any model, made a tensor that carries a graph."""
        if len(self._results) < _MAX_RESULTS:
            self._results.append((self._iteration, site, weakref.ref(tensor)))

    def _vote(self) -> None:
        """What an earlier iteration made and is still there when the next one goes backward is kept by somebody."""
        before = [row for row in self._results if row[0] < self._iteration]
        self._votes.update({site for _, site, ref in before if site is not None and ref() is not None})
        self._results = [row for row in self._results if row[0] >= self._iteration]

    def stepped(self, step: int) -> None:
        if step % 5:
            return
        kept, made = max(self._kept(self._marks, step), self._kept(self._outputs, step))
        self.record["made"], self.record["kept"] = made, kept
        self.record["series"] = [*self.record["series"], [step, kept, made]][-200:]
        self.record["sites"] = [[site, votes] for site, votes in self._votes.most_common(4)]

    @staticmethod
    def _kept(marks: deque[tuple[int, weakref.ref[_Mark]]], step: int) -> tuple[int, int]:
        old = [ref for made, ref in marks if made <= step - _OLD]
        return sum(ref() is not None for ref in old), len(old)

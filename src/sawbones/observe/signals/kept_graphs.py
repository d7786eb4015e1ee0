"""Which steps' graphs are still alive long after their backward pass, and which line keeps them.

A mark in the metadata of the loss's own graph node lives exactly as long as the node does, whoever
holds it. The same for a model's output, and for the earliest node of the graph, which whatever is
kept out of the middle of the model keeps too. Outputs are counted by the line that calls the model:
what one line keeps does not disappear among the graphs that another one lets go.
"""

from __future__ import annotations

import weakref
from collections import Counter, deque
from typing import Any

import torch

from sawbones.observe.signals.holders import filling_lines
from sawbones.observe.sites import SiteFinder

_OLD = 12  # steps: the observer itself may hold the last few losses
_MARKED_IN_FULL = 300
_MAX_RESULTS = 400
_MAX_LINES = 16  # that call a model
_MAX_DEPTH = 2000
_TELLING = (
    8  # graphs kept, all but a few of those made: from then on the holder is looked for, once
)


class _Mark:
    __slots__ = ("__weakref__",)


_Marks = deque[tuple[int, weakref.ref[_Mark]]]


def _marks() -> _Marks:
    return deque(maxlen=2000)


class KeptGraphs:
    """`record` is what a run keeps: made, kept, series [step, kept], sites [[site, votes]]."""

    def __init__(self, sites: SiteFinder) -> None:
        self._sites = sites
        self._holders: list[Any] | None = None
        self._marks, self._earliest = _marks(), _marks()
        self._outputs: dict[Any, _Marks] = {}  # line that calls the model -> marks
        self._results: list[tuple[int, Any, weakref.ref[torch.Tensor]]] = []
        self._iteration = 0
        self._votes: Counter[Any] = Counter()
        self.record: dict[str, Any] = {"made": 0, "kept": 0, "series": [], "sites": []}

    def made(self, loss: Any, step: int) -> None:
        """A backward pass begins."""
        self._vote()
        self._mark(getattr(loss, "grad_fn", None), step, self._marks)
        if step < _MARKED_IN_FULL or step % 10 == 0:
            self._mark(_first_node(loss), step, self._earliest)

    def output(self, tensor: Any, step: int, site: Any = None) -> None:
        line = site if site in self._outputs or len(self._outputs) < _MAX_LINES else None
        marks = self._outputs.setdefault(line, _marks())
        self._mark(getattr(tensor, "grad_fn", None), step, marks)

    def _mark(self, node: Any, step: int, marks: _Marks) -> None:
        if node is None or (step >= _MARKED_IN_FULL and step % 10) or "sawbones" in node.metadata:
            return
        mark = _Mark()
        node.metadata["sawbones"] = mark
        marks.append((step, weakref.ref(mark)))

    def model_called(self) -> None:
        """What was made before this call belongs to the iteration before."""
        self._iteration += 1

    @property
    def has_room(self) -> bool:
        """For another result of this iteration."""
        return len(self._results) < _MAX_RESULTS

    def result(self, tensor: torch.Tensor, site: Any) -> None:
        """The loop itself, outside of any model, made a tensor that carries a graph."""
        if self.has_room:
            self._results.append((self._iteration, site, weakref.ref(tensor)))

    def _vote(self) -> None:
        """What an earlier iteration made and is still there when the next one goes backward is kept
        by somebody.
        """
        before = [row for row in self._results if row[0] < self._iteration]
        self._votes.update(
            {site for _, site, ref in before if site is not None and ref() is not None}
        )
        self._results = [row for row in self._results if row[0] >= self._iteration]

    def stepped(self, step: int) -> None:
        if step % 5:
            return
        every = (self._marks, self._earliest, *self._outputs.values())
        counts = [self._kept(marks, step) for marks in every]
        kept, made = max(counts, key=lambda row: (_is_most(*row), *row))
        if self._holders is None and kept >= _TELLING and _is_most(kept, made):
            self._holders = list(filling_lines(self._sites))
            self.record["holders"] = self._holders
        self.record["made"], self.record["kept"] = made, kept
        self.record["series"] = [*self.record["series"], [step, kept, made]][-200:]
        self.record["sites"] = [[site, votes] for site, votes in self._votes.most_common(4)]

    @staticmethod
    def _kept(marks: _Marks, step: int) -> tuple[int, int]:
        """Of steps, not of graphs: all those of one evaluation are one thing that is held."""
        old = [(made, ref) for made, ref in marks if made <= step - _OLD]
        return len({made for made, ref in old if ref() is not None}), len({made for made, _ in old})


def _is_most(kept: int, made: int) -> bool:
    return kept >= max(0.8 * made, 1)


def _first_node(loss: Any) -> Any:
    """The node made earliest, on a path that always goes on with the earlier of two."""
    node, found = getattr(loss, "grad_fn", None), None
    for _ in range(_MAX_DEPTH):
        if node is None:
            break
        found = node
        before = [n for n, _ in node.next_functions if n is not None and n.next_functions]
        node = min(before, key=lambda n: int(n._sequence_nr()), default=None)
    return found

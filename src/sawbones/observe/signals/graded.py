"""Evaluations whose author did not switch gradients off: model calls that no backward pass reaches.

Whoever forgets `model.eval()` forgets `no_grad()` too. Such a call looks like one of training when
it begins. It is taken for an evaluation while all of this holds: another place in the script calls
the model for training, no backward pass has come through the outputs of this place, it is called
on few steps only, and its rows are none that were trained on. The next backward pass decides: it
comes through these outputs, or the evaluation stands. So it does at the end of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from sawbones.observe.fingerprints import batch_fingerprints, tensors_in
from sawbones.observe.sites import SiteFinder
from sawbones.schema import Site

_CALLERS = 4  # frames around the call: one function often serves training and evaluation
_STEPS_PER_PASS = 4  # a place that is called on more than every fourth step is part of training
_MAX_NODES = 20_000  # of a graph, that are looked at
_MAX_ROWS = 200_000
_LOOKS = 3  # backward passes that are searched for a place that is not taken for an evaluation
_MAX_WAITING = 16  # outputs that are searched for at once: each keeps its graph alive
_TO_THE_END = 1 << 60

Place = tuple[Site, ...]
Moment = tuple[int, int]  # number of the next event, number of the next batch


class _Output(NamedTuple):
    place: Place
    node: Any
    taken: bool  # for the output of an evaluation


class GradedEvaluations:
    """`record` is what a run keeps: which events and batches belong to such evaluations."""

    def __init__(self, sites: SiteFinder) -> None:
        self._sites = sites
        self._trained: set[Place] = set()
        self._steps: dict[Place, tuple[int, int]] = {}  # (latest step, how many steps)
        self._looks: dict[Place, int] = {}
        self._rows: set[int] = set()
        self._latest: Place = ()  # where the latest call with gradients on stands
        self._waiting: list[_Output] = []
        self._begun: Moment | None = None
        self._ended: Moment | None = None
        self.record: dict[str, list[Moment]] = {"events": [], "batches": []}

    def called(self, step: int, given: Any, now: Moment) -> bool:
        """A model is called with gradients on: whether that is taken for an evaluation."""
        place = self._latest = self._place()
        latest, count = self._steps.get(place, (-1, 0))
        count += latest != step
        self._steps[place] = step, count
        rows = batch_fingerprints([tensor for _, tensor in tensors_in(given)])
        is_rare = count * _STEPS_PER_PASS <= step
        is_new = 2 * sum(row in self._rows for row in rows) < len(rows)
        if self._trained and place not in self._trained and is_rare and is_new:
            self._begun, self._ended = self._begun or now, None
            return True
        if len(self._rows) < _MAX_ROWS:
            self._rows.update(rows)
        if self._begun is not None and self._ended is None:
            self._ended = now
        return False

    def returned(self, result: Any, taken: bool) -> None:
        place = self._latest
        if place in self._trained or (not taken and self._looks.get(place, 0) >= _LOOKS):
            return
        found = [t.grad_fn for _, t in tensors_in(result) if t.grad_fn is not None]
        outputs = [_Output(place, node, taken) for node in found]
        self._waiting = [*self._waiting, *outputs][-_MAX_WAITING:]

    def settle(self, loss: Any, now: Moment) -> bool | None:
        """A backward pass begins. True when an evaluation stands, False when this is its backward
        pass, None when there was none.
        """
        waiting, self._waiting = self._waiting, []
        if waiting:
            node = loss.grad_fn if isinstance(loss, torch.Tensor) else None
            reached = _reached(node, [output.node for output in waiting])
            through = [output for output in waiting if id(output.node) in reached]
            self._trained.update(output.place for output in through)
            for place in {output.place for output in waiting}:
                self._looks[place] = self._looks.get(place, 0) + 1
            if any(output.taken for output in through):
                self._begun = self._ended = None
                return False
        return self.finish(now) or None

    def finish(self, now: Moment = (_TO_THE_END, _TO_THE_END)) -> bool:
        """Whether there was an evaluation: no backward pass comes through it any more."""
        if self._begun is None:
            return False
        ended = self._ended or now
        self.record["events"].append((self._begun[0], ended[0]))
        self.record["batches"].append((self._begun[1], ended[1]))
        self._begun = self._ended = None
        return True

    def _place(self) -> Place:
        innermost = self._sites.find()
        around = tuple(self._sites.callers(_CALLERS))
        return (innermost, *around) if innermost is not None else around


def _reached(root: Any, nodes: Sequence[Any]) -> set[int]:
    """Which of these nodes the graph below `root` holds, by identity."""
    wanted = {id(node) for node in nodes}
    seen: set[Any] = set()
    ahead = [root] if root is not None else []
    while ahead and len(seen) < _MAX_NODES:
        node = ahead.pop()
        if node in seen:
            continue
        seen.add(node)
        ahead.extend(below for below, _ in node.next_functions if below is not None)
    return wanted & {id(node) for node in seen}

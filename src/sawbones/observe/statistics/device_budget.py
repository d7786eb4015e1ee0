"""How often a device measures parameters and updates: on every step where that costs little, else
as often as the budget allows.

Gradients are measured on every step. The price of both passes and the length of a step are taken
from the device's own clock over a few steps at the start, read once they have passed, so nothing
waits; the length is looked at again now and then.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch

SHARE = 0.015  # of a step, for all passes together on every step
# where that is not enough for parameters on every step: with the host's part and deep steps it
# stays under 0.02
SAMPLED = 0.010
WINDOW = range(
    4, 12
)  # steps over which times are taken: kernels are compiled and the allocator has settled by then
PERIOD = 500  # steps after which the length of a step is taken again
TWO_PASSES = (
    1.4  # a copy before the step and a comparison after it, against both in one pass on every step
)
RAREST = 50


class DeviceBudget:
    def __init__(self) -> None:
        self.every = 1
        self.step = -1  # counted here: numbers given by the caller may jump
        self._begins: list[torch.cuda.Event] = []
        self._spans: dict[str, list[tuple[torch.cuda.Event, torch.cuda.Event]]] = {
            "gradients": [],
            "parameters": [],
        }
        self._costs_ms: dict[str, float] | None = None

    @property
    def is_calibrating(self) -> bool:
        """Costs are not known yet: passes run alone, one after the other, so that they can be
        timed.
        """
        return self._costs_ms is None

    @property
    def is_turn(self) -> bool:
        return self.step % self.every == 0

    def step_begins(self) -> None:
        self.step += 1
        if self.step % PERIOD in WINDOW:
            self._begins.append(_mark())
        elif self._begins and self._begins[-1].query():
            self._decide()

    def start(self) -> torch.cuda.Event | None:
        return _mark() if self.is_calibrating and self.step in WINDOW else None

    def end(self, what: str, start: torch.cuda.Event | None) -> None:
        if start is not None:
            self._spans[what].append((start, _mark()))

    def _decide(self) -> None:
        if self._costs_ms is None:
            self._costs_ms = {
                what: _middle([a.elapsed_time(b) for a, b in spans if b.query()])
                for what, spans in self._spans.items()
            }
            self._spans = {}
        begins, self._begins = self._begins, []
        step_ms = _middle([a.elapsed_time(b) for a, b in pairwise(begins)])
        gradients, parameters = self._costs_ms["gradients"], self._costs_ms["parameters"]
        if gradients + parameters <= SHARE * step_ms:
            self.every = 1
            return
        left = max(SAMPLED * step_ms - gradients, SAMPLED * step_ms * 0.1)
        self.every = min(RAREST, max(2, math.ceil(parameters * TWO_PASSES / left)))


def _mark() -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def _middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0

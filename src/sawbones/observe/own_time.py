"""How much of the time between two events was ours, so that a picture of a step can leave it out."""

from __future__ import annotations

from sawbones.observe.guard import Guard
from sawbones.observe.interrupts import HOLDING

LEAST_S = 1e-4  # less between two events is not written down
MOST_ROWS = 5000


class OwnTime:
    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._until = 0.0
        self.rows: list[tuple[int, float]] = []  # event, our milliseconds since the one before

    def note(self, event: int, now: float) -> None:
        ours = self._guard.total_s + (now - self._guard.entered if HOLDING.depth else 0.0)
        passed, self._until = ours - self._until, ours
        if passed > LEAST_S and len(self.rows) < MOST_ROWS:
            self.rows.append((event, round(passed * 1e3, 3)))

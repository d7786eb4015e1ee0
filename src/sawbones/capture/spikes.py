"""When a loss counts as a spike. Deliberately deaf: a bundle is written for what nobody would call
noise.
"""

from __future__ import annotations

import math
from collections import deque
from statistics import median

HISTORY = 50
ENOUGH = 20
TIMES_MEDIAN = 4.0
TIMES_MAXIMUM = 2.0
DEVIATIONS = 12.0
SIGMA = (
    1.4826  # from the median absolute deviation to the standard deviation of a normal distribution
)


class Spikes:
    def __init__(self) -> None:
        self._recent: deque[float] = deque(maxlen=HISTORY)
        self._levelled = (
            False  # spikes among the first losses, when there was no limit yet, are cut down to it
        )

    def limit(self) -> float | None:
        """What the next loss must exceed, None while too little is known."""
        if len(self._recent) < ENOUGH:
            return None
        return max(self._far(), TIMES_MAXIMUM * max(self._recent))

    def _far(self) -> float:
        """From the middle of what was recent, whatever the largest of it was."""
        middle = median(self._recent)
        spread = SIGMA * median(abs(value - middle) for value in self._recent)
        return max(middle + DEVIATIONS * spread, TIMES_MEDIAN * middle)

    def passed(self, loss: float) -> bool:
        """A loss that is no spike at a glance, and all that is to be done about it; False where
        `saw` must look.
        """
        recent = self._recent
        if len(recent) < ENOUGH or not loss <= TIMES_MAXIMUM * max(recent):
            return False
        recent.append(loss)
        return True

    def saw(self, loss: float) -> float | None:
        """The limit that this loss exceeds. A quick look decides in nearly every step: a spike is
        above all that was recent.
        """
        exceeded = None
        if len(self._recent) >= ENOUGH and loss > 0 and loss > TIMES_MAXIMUM * max(self._recent):
            limit = self.limit()
            exceeded = limit if limit is not None and loss > limit else None
        if math.isfinite(loss):
            # A spike is remembered as no more than the limit, else the next visit of the same bad
            # sample would go unseen.
            self._recent.append(loss if exceeded is None else exceeded)
            if len(self._recent) == ENOUGH and not self._levelled:
                self._levelled, far = True, self._far()
                if far > 0:
                    self._recent = deque((min(value, far) for value in self._recent), HISTORY)
        return exceeded

"""A script that trains one model after another: each is looked at when it begins."""

from __future__ import annotations

LATE = 20  # steps: an optimizer that begins before is one of several of the same stage
MAX_STAGES = 3  # after the first; more are repetitions, as of folds
DEEP_AFTER = (1, 2, 6, 21)  # steps after the first one of its optimizer


class Stages:
    def __init__(self) -> None:
        self._known: set[int] = set()
        self._num_late = 0
        self.deep_steps: set[int] = set()

    def stepped(self, optimizer: int, step: int) -> None:
        """This optimizer has taken this step of the run."""
        if optimizer in self._known:
            return
        self._known.add(optimizer)
        if step > LATE and self._num_late < MAX_STAGES:
            self._num_late += 1
            self.deep_steps.update(step + later for later in DEEP_AFTER)

"""When the next deep step of a run may be taken: as soon as it and those before it take little of the time that has passed."""

from __future__ import annotations

SHARE = 0.0125  # of the run's time, for all deep steps together
FREE_S = 0.3  # nobody notices so much once


class DeepBudget:
    def __init__(self) -> None:
        self.is_due = False  # one that was planned is waiting for its turn
        self._spent_s = 0.0
        self._latest_s = 0.0

    def paid(self, seconds: float) -> None:
        self._spent_s += seconds
        self._latest_s = seconds
        self.is_due = False

    def allows(self, elapsed_s: float) -> bool:
        """The first one always; its like may have to wait."""
        self.is_due = self._spent_s > 0.0 and self._spent_s + self._latest_s > max(FREE_S, SHARE * elapsed_s)
        return not self.is_due

"""When something dear may be done again during a run: once it, and what it cost so far, take little
of the time that passed.
"""

from __future__ import annotations


class Pace:
    def __init__(self, share: float, free_s: float) -> None:
        """`share`: of the run's time, for all of them together. `free_s`: so much nobody notices
        once.
        """
        self.is_due = False  # one that was planned is waiting for its turn
        self._share = share
        self._free_s = free_s
        self._spent_s = 0.0
        self._latest_s = 0.0

    def paid(self, seconds: float) -> None:
        self._spent_s += seconds
        self._latest_s = seconds
        self.is_due = False

    def allows(self, elapsed_s: float) -> bool:
        """The first one always; its like may have to wait."""
        self.is_due = self._spent_s > 0.0 and self._spent_s + self._latest_s > max(
            self._free_s, self._share * elapsed_s
        )
        return not self.is_due


def deep_pace() -> Pace:
    return Pace(share=0.007, free_s=0.3)


def look_pace() -> Pace:
    """Of live warnings, which read the recording so far."""
    return Pace(share=0.02, free_s=1.0)

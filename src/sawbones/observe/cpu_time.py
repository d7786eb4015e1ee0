"""How long threads ran and how long they stood in the queue for a core, as Linux counts it.

On a machine with more work than cores a second of the clock is not a second of work. Time limits
count what the script would have taken on cores of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from sawbones.schema.cpu import CpuTime

LARGEST_STRETCH = 3.0  # a budget of a minute never takes more than three


def cpu_time(processes: Iterable[int | str] = ("self",)) -> CpuTime:
    """Of all threads of these processes; nothing where the system does not count it."""
    threads = list(_threads(processes))
    return CpuTime(sum(ran for ran, _ in threads), sum(waited for _, waited in threads))


def own_seconds(elapsed: float, processes: Iterable[int | str] = ("self",)) -> float:
    """`elapsed` without what the thread that waited longest for a core has waited."""
    waited = max((waited for _, waited in _threads(processes)), default=0.0)
    return max(elapsed - waited, elapsed / LARGEST_STRETCH)


class EndAsked:
    """Whether the parent has asked for the end: it looks at the recording while the script runs."""

    EVERY_SECONDS = 0.5
    FILE = "end-asked"

    def __init__(self, folder: Path) -> None:
        self._file = folder / self.FILE
        self._look_again = 0.0

    def ask(self) -> None:
        self._file.touch()

    def forget(self) -> None:
        self._file.unlink(missing_ok=True)

    def has_come(self, now: float) -> bool:
        if now < self._look_again:
            return False
        self._look_again = now + self.EVERY_SECONDS
        return self._file.exists()


class Clock:
    """Whether a time limit is over, in seconds of a machine with cores to spare, or the end is
    asked for.
    """

    def __init__(
        self,
        began: float,
        limit: float,
        processes: Iterable[int | str] = ("self",),
        asked: EndAsked | None = None,
    ) -> None:
        self.began = began
        self.asked = asked
        self.limit = limit
        self.processes = processes
        self._look_again = began + limit

    def is_over(self, now: float) -> bool:
        if self.asked is not None and self.asked.has_come(now):
            return True
        if now < self._look_again:
            return False
        left = self.limit - own_seconds(now - self.began, self.processes)
        self._look_again = now + left
        return left <= 0


def _threads(processes: Iterable[int | str]) -> Iterator[tuple[float, float]]:
    """(seconds it ran, seconds it could have run) of each."""
    for process in processes:
        try:
            threads = os.listdir(f"/proc/{process}/task")
        except OSError:
            continue
        for thread in threads:
            try:
                counts = Path(f"/proc/{process}/task/{thread}/schedstat").read_bytes().split()
            except OSError:
                continue
            yield int(counts[0]) / 1e9, int(counts[1]) / 1e9

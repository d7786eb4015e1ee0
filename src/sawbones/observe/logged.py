"""Numbers that a trainer logs itself: a record for each row, so that the live page reads them while
the run goes on, and a kill does not take them.
"""

from __future__ import annotations

from collections.abc import Mapping

from sawbones.schema.one_off import Logged
from sawbones.store import RunWriter

MOST_ROWS = 20_000


class LoggedNumbers:
    def __init__(self, writer: RunWriter) -> None:
        self._writer = writer
        self._count = 0

    def add(
        self, passed: int, step: int | None, epoch: float | None, metrics: Mapping[str, float]
    ) -> None:
        """`passed`: optimizer steps so far; `step` and `epoch` are the trainer's own."""
        if self._count < MOST_ROWS:
            self._writer.record("logged", self._count, Logged(passed, step, epoch, metrics))
            self._count += 1

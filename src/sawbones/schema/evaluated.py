"""One evaluation of a classifier: what it answered, class by class."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Evaluated:
    step: int  # optimizer steps that were done before it
    source: str  # the loader that it went over, "" where its batches come from none
    asked: tuple[int, ...]  # answers whose true class is 0, 1, ...
    right: tuple[int, ...]  # those of them that are right
    # true class x answer; kept of the latest evaluation alone
    matrix: tuple[tuple[int, ...], ...] = ()
    skipped: int = 1  # of the answers, one in this many was counted

    @property
    def accuracy(self) -> float:
        return sum(self.right) / max(sum(self.asked), 1)

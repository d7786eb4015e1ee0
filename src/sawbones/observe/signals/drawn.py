"""Which rows of its data set a loader draws: how many times, how many different ones, how far they
reach.

Under `diagnose` only. What the sampler gives is counted, in the process that trains: workers get
their rows from there.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from sawbones.schema.loader import Drawn

_MAX_ROWS = 1 << 20  # different ones of a loader, more are not counted
_MAX_SAMPLERS = 64


class _Rows:
    def __init__(self, sampler: Any) -> None:
        self.sampler = weakref.ref(sampler)
        self.loader = -1
        self.draws = 0
        self.different: set[int] = set()
        self.readable = True


class DrawnRows:
    def __init__(self) -> None:
        self._all: list[_Rows] = []
        self._by_sampler: dict[int, _Rows] = {}  # identities: a sampler may not be hashable

    def built(self, loader: Any, index: int) -> None:
        rows = self._of(loader._index_sampler)
        if rows is not None:
            rows.loader = index

    def drew(self, iterator: Any, given: Any) -> None:
        """The sampler gave the rows of a batch, or one row."""
        rows = self._of(iterator._index_sampler)
        if rows is None or not rows.readable:
            return
        batch = list(given) if isinstance(given, Iterable) else [given]
        numbers = [number for row in batch if (number := _number(row)) is not None]
        rows.readable = len(numbers) == len(batch) and len(rows.different) < _MAX_ROWS
        rows.draws += len(numbers)
        rows.different.update(numbers)

    def record(self) -> list[Drawn] | None:
        found = [r for r in self._all if r.readable and r.draws and r.loader >= 0]
        return [
            Drawn(r.loader, r.draws, len(r.different), min(r.different), max(r.different))
            for r in found
        ] or None

    def _of(self, sampler: Any) -> _Rows | None:
        known = self._by_sampler.get(id(sampler))
        if known is not None and known.sampler() is sampler:
            return known
        if len(self._all) >= _MAX_SAMPLERS:
            return None
        try:
            rows = _Rows(sampler)
        except TypeError:
            return None  # a list of rows: it cannot be referenced weakly
        self._all.append(rows)
        # in place of one that is gone and whose identity came again
        self._by_sampler[id(sampler)] = rows
        return rows


def _number(row: Any) -> int | None:
    try:
        return row.__index__()  # type: ignore[no-any-return]
    except (AttributeError, TypeError, ValueError):
        return None

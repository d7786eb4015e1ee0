"""Delta debugging: the smallest part of a list for which a test still holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")


def smallest(items: Sequence[T], holds: Callable[[list[T]], bool]) -> list[T]:
    """`holds(items)` is taken as given. Halves first, then what is left without each piece, in ever
    finer pieces.
    """
    kept = list(items)
    pieces = 2
    while len(kept) >= 2:
        chunks = _cut(kept, min(pieces, len(kept)))
        found = next((chunk for chunk in chunks if len(chunk) < len(kept) and holds(chunk)), None)
        if found is not None:
            kept, pieces = found, 2
            continue
        if len(chunks) > 2:
            rests = (
                [x for other in chunks if other is not chunk for x in other] for chunk in chunks
            )
            found = next((rest for rest in rests if holds(rest)), None)
            if found is not None:
                kept, pieces = found, max(pieces - 1, 2)
                continue
        if pieces >= len(kept):
            break
        pieces = min(len(kept), pieces * 2)
    return kept


def shortest_window(length: int, holds: Callable[[int, int], bool]) -> tuple[int, int]:
    """(start, length) of the shortest window found: the front half, the back half, then ends shaved
    off in halving bites.
    """
    start, size = 0, length
    while size > 1:
        half = (size + 1) // 2
        if holds(start, half):
            size = half
        elif holds(start + size - half, half):
            start, size = start + size - half, half
        else:
            break
    bite = max(size // 4, 1)
    while bite and size > 1:
        if size > bite and holds(start, size - bite):
            size -= bite
        elif size > bite and holds(start + bite, size - bite):
            start, size = start + bite, size - bite
        else:
            bite //= 2
    return start, size


def _cut(items: list[T], pieces: int) -> list[list[T]]:
    bounds = [round(i * len(items) / pieces) for i in range(pieces + 1)]
    return [items[a:b] for a, b in pairwise(bounds) if b > a]

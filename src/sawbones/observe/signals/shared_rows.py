"""Lists of NumPy arrays that are put together into one, some rows of which are the same memory
although that memory held different values at different times.

Under `diagnose`. NumPy tells nobody of a write. So the values of an array are looked at where it
passes by: when a tensor is made from it, and as a row of a list. Rows are compared by where their
values lie; an array that is gone, and its address with it, is known by a weak reference. Only
different arrays that the script keeps count: those that have passed by before. A buffer that is
filled anew, of which a row is drawn twice, gives the same array, or one that is made for the draw.
Two different arrays in one memory are views of a third. Views alone are referred to, weakly: an array
with memory of its own may be resized, which NumPy refuses where a reference is held.
"""

from __future__ import annotations

import time
import weakref
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sawbones.schema import Site
from sawbones.schema.shared_rows import SharedRows

LEAST_ROWS = 8  # shorter lists are stacks of frames, or of the same observation at a restart
_LEAST_VALUES = 2
_MAX_ROWS = 4096
_MAX_LISTS = 1000  # at one place; later ones are like them
_MAX_PLACES = 40
_MAX_BUFFERS = 20_000
_MAX_SECONDS = 1.0
_ALL_BYTES = 4096  # of larger arrays so many values are read, evenly spread
_READ = 256

_Span = tuple[int, int, tuple[int, ...], tuple[int, ...]]  # owner, address, shape, strides


@dataclass(eq=False)
class _Buffer:
    view: weakref.ref[Any]  # one that has passed by: while it is there, the memory is the same
    held: int  # a digest of its values
    has_changed: bool = False


@dataclass(eq=False)
class _Place:
    lists: int = 0
    rows: int = 0
    shared_lists: int = 0
    shared_rows: int = 0
    buffers: set[_Buffer] = field(default_factory=set)


class SharedRowsLog:
    def __init__(self) -> None:
        self._buffers: dict[_Span, _Buffer] = {}
        self._arrays: dict[int, weakref.ref[Any]] = {}  # that have passed by
        self._places: dict[Site | None, _Place] = {}
        self._spent_s = 0.0

    @property
    def has_time(self) -> bool:
        return self._spent_s < _MAX_SECONDS

    def passed(self, array: Any) -> None:
        """A tensor is made from an array."""
        began = time.perf_counter()
        if type(array) is np.ndarray and array.size >= _LEAST_VALUES and _is_view(array):
            self._look(array)
        self._spent_s += time.perf_counter() - began

    def joined(self, rows: Any, site: Site | None) -> None:
        """A list of arrays becomes one array or tensor."""
        place = self._places.get(site)
        if place is None:
            if len(self._places) >= _MAX_PLACES:
                return
            place = self._places[site] = _Place()
        if place.lists >= _MAX_LISTS:
            return
        began = time.perf_counter()
        at: dict[_Span, set[int]] = {}  # memory -> the kept arrays that lie there
        views = [row for row in rows if _is_view(row)]
        for row in views:
            kept = at.setdefault(_span(row), set())
            if self._is_known(row):
                kept.add(id(row))
        for row in views:
            self._look(row)
        place.lists += 1
        place.rows += len(rows)
        again = [(self._buffers.get(span), len(kept)) for span, kept in at.items() if len(kept) > 1]
        shared = [(b, num) for b, num in again if b is not None and b.has_changed]
        if shared and len(at) + len(rows) - len(views) > 1:
            place.shared_lists += 1
            place.shared_rows += sum(num for _, num in shared)
            place.buffers.update(buffer for buffer, _ in shared)
        self._spent_s += time.perf_counter() - began

    def _is_known(self, array: Any) -> bool:
        known = self._arrays.get(id(array))
        return known is not None and known() is array

    def _look(self, array: Any) -> None:
        if not self._is_known(array):
            if len(self._arrays) >= _MAX_BUFFERS:
                self._arrays = {key: a for key, a in self._arrays.items() if a() is not None}
            if len(self._arrays) < _MAX_BUFFERS:
                self._arrays[id(array)] = weakref.ref(array)
        span, held = _span(array), _digest(array)
        known = self._buffers.get(span)
        if known is None or known.view() is None:
            if len(self._buffers) >= _MAX_BUFFERS:
                self._buffers = {s: b for s, b in self._buffers.items() if b.view() is not None}
            if len(self._buffers) < _MAX_BUFFERS:
                self._buffers[span] = _Buffer(weakref.ref(array), held)
            return
        if known.held != held:
            known.held, known.has_changed = held, True
        known.view = weakref.ref(array)

    def record(self) -> tuple[SharedRows, ...]:
        return tuple(
            SharedRows(
                site,
                place.lists,
                place.rows,
                place.shared_lists,
                place.shared_rows,
                len(place.buffers),
            )
            for site, place in self._places.items()
            if place.lists
        )


def is_list_of_arrays(rows: Any) -> bool:
    """Quickly: most lists that are put together are none."""
    if type(rows) not in (list, tuple) or not LEAST_ROWS <= len(rows) <= _MAX_ROWS:
        return False
    return all(type(row) is np.ndarray and row.size >= _LEAST_VALUES for row in rows)


def _is_view(array: Any) -> bool:
    return type(array.base) is np.ndarray


def _span(array: Any) -> _Span:
    return id(array.base), array.__array_interface__["data"][0], array.shape, array.strides


def _digest(array: Any) -> int:
    if array.nbytes > _ALL_BYTES:
        places = np.linspace(0, array.size - 1, _READ).astype(np.int64)
        array = array[np.unravel_index(places, array.shape)]
    return hash(array.tobytes())

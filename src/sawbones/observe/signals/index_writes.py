"""Sums into places that an index names several times: `a[i] += b` keeps one of the values.

Under `diagnose`. Python reads `a[i]`, adds, and writes the result back, so of an index that occurs
twice the last sum alone is kept.
"""

from __future__ import annotations

import weakref
from collections import Counter, deque
from dataclasses import dataclass
from typing import Any

import torch

from sawbones.observe.guard import is_from_outside
from sawbones.observe.unseen import unseen
from sawbones.schema import Site
from sawbones.schema.source import IndexWrites

_READS_REMEMBERED = 4  # between reading a[i] and writing it back other operands may be read
_MAX_PLACES = 40
_MAX_LOOKS = 30  # at one place; later writes are like the earlier ones
_MAX_INDICES = 1 << 20
_ADDING = frozenset({"add", "add_", "sub", "sub_"})
_KEEPING_ORDER = (int, slice, type(None), type(...))  # of places: no index tensor among them
HEARD = _ADDING | {"__getitem__", "__setitem__"}


@dataclass(eq=False)
class _Read:
    of: weakref.ref[torch.Tensor]
    index: tuple[int, ...]  # identities of its parts
    value: weakref.ref[torch.Tensor]  # what was read, then the sum
    added: Any = None  # out of the graph, until the write or the end of the step


class IndexWriteLog:
    def __init__(self) -> None:
        self._reads: deque[_Read] = deque(maxlen=_READS_REMEMBERED)
        self._places: dict[Site, Counter[str]] = {}
        self._off = False

    def clear(self) -> None:
        self._reads.clear()

    def concerns(self, name: str, args: Any) -> bool:
        """Quickly, and never too seldom: most operators of HEARD have nothing to do with it."""
        if name == "__getitem__":
            return len(args) > 1 and type(args[1]) not in _KEEPING_ORDER
        return bool(self._reads)

    def heard(self, name: str, args: Any, result: Any, site: Any) -> None:
        """An operator of HEARD has run; `site` finds its line."""
        if self._off:
            return
        try:
            with unseen(), torch.no_grad():
                self._note(name, args, result, site)
        except Exception as error:
            if is_from_outside(error):
                raise
            self._off = True  # the script goes on; what was counted so far stays

    def _note(self, name: str, args: Any, result: Any, site: Any) -> None:
        if name == "__getitem__":
            parts = _indices(args[1])
            if parts and isinstance(result, torch.Tensor):
                index = tuple(map(id, parts))
                self._reads.append(_Read(weakref.ref(args[0]), index, weakref.ref(result)))
        elif name == "__setitem__":
            self._wrote(args, site)
        elif self._reads and isinstance(result, torch.Tensor):
            for read in self._reads:
                value = read.value()
                if value is not None and any(a is value for a in args[:2]):
                    added = next((a for a in args[:2] if a is not value), None)
                    read.added = added.detach() if isinstance(added, torch.Tensor) else added
                    read.value = weakref.ref(result)

    def _wrote(self, args: Any, site: Any) -> None:
        target, index, value = args[:3]
        parts = _indices(index)
        if not parts or not self._reads:
            return
        identity = tuple(map(id, parts))
        for read in self._reads:
            ours = read.of() is target and read.index == identity
            total = read.value()
            if not ours or read.added is None or total is None or total is not value:
                continue
            where = site()
            if where is not None:
                self._look(where, parts, read.added, total)
            self._reads.remove(read)
            return

    def _look(self, site: Site, parts: list[torch.Tensor], added: Any, value: torch.Tensor) -> None:
        if site not in self._places and len(self._places) >= _MAX_PLACES:
            return
        row = self._places.setdefault(site, Counter())
        if row["writes"] >= _MAX_LOOKS or parts[0].numel() > _MAX_INDICES:
            return
        row["writes"] += 1
        values, repeated, lost = counts(parts, added, value)
        row["values"] += values
        row["repeated"] += repeated
        row["lost"] += lost
        row["counted"] += repeated if _is_one_number(added) else 0

    def record(self) -> tuple[IndexWrites, ...]:
        return tuple(
            IndexWrites(n["writes"], n["values"], n["repeated"], n["lost"], n["counted"], site)
            for site, n in self._places.items()
        )


def _indices(index: Any) -> list[torch.Tensor]:
    """The index tensors, where the index is nothing but whole numbers in tensors. Masks name every
    place once.
    """
    parts = list(index) if isinstance(index, tuple) else [index]
    for part in parts:
        whole = type(part) is torch.Tensor and part.dtype in (torch.int64, torch.int32)
        if not whole or part.device.type != "cpu" or not part.dim():
            return []
    return parts


def _is_one_number(added: Any) -> bool:
    if not isinstance(added, torch.Tensor):
        return True
    return bool(added.numel()) and bool((added == added.reshape(-1)[0]).all())


def counts(parts: list[torch.Tensor], added: Any, value: torch.Tensor) -> tuple[int, int, int]:
    """(values that are added, those at a place that another one has too, those of them that are
    lost although they differ from the one that is kept).
    """
    wide = torch.stack(torch.broadcast_tensors(*parts))
    rows = wide.reshape(len(parts), -1).T
    _, inverse, number = torch.unique(rows, dim=0, return_inverse=True, return_counts=True)
    repeated = int((number[inverse] > 1).sum())
    if not repeated or not isinstance(added, torch.Tensor):
        return len(rows), repeated, 0
    each = torch.broadcast_to(added.detach(), value.shape).reshape(len(rows), -1)
    last = torch.empty(len(number), dtype=torch.int64)
    last[inverse] = torch.arange(len(rows))
    kept = each[last[inverse]]
    return len(rows), repeated, int((each != kept).any(dim=1).sum())

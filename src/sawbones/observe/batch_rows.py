"""Which rows of its data set the samples of a batch are: the numbers that the sampler gave.

Only those of the latest few batches are kept, and no batch: its identity is enough to find the rows
of one that is still in hand. A collate function of the user's own may have put the samples in
another order, or left some out; there the values decide.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.utils.data import Subset, default_collate

from sawbones.observe.fingerprints import tensors_in

_KEPT = 4  # a loader may be read one batch ahead, and two may take turns
_MOST = 4096  # rows of a batch, and batches that workers may be ahead by
_MOST_READ = 256  # samples that are read again

Rows = tuple[str, tuple[int, ...]]  # class of the data set that holds them, their numbers there


class Drawn:
    """The rows of one batch."""

    def __init__(self, iterator: Any, value: Any, given: Any) -> None:
        self.value = id(value)
        self.in_order = getattr(iterator, "_collate_fn", None) is default_collate
        self._given = given
        data = getattr(iterator, "_dataset", None)
        self._data: Callable[[], Any]
        try:
            self._data = weakref.ref(data)
        except TypeError:  # a list as a data set
            self._data = lambda: data

    def rows(self) -> Rows | None:
        """In the order in which they were drawn; None where the sampler gives no numbers."""
        given = self._given
        numbers = list(given) if isinstance(given, Iterable) else [given]
        if not numbers or len(numbers) > _MOST or not all(map(_is_number, numbers)):
            return None
        return _resolved(self._data(), [int(number) for number in numbers])

    def rows_by_value(self, value: Any) -> Rows | None:
        """Reads the samples again and looks for them in the batch; None where one is not found, or
        fits twice.
        """
        data, given = self._data(), self._given
        if data is None or self.rows() is None or not 1 < len(given) <= _MOST_READ:
            return None
        samples = [sample_parts(data[number]) for number in given]
        for _, tensor in tensors_in(value):
            if tensor.dim() < 1 or tensor.shape[0] > len(given):
                continue
            found = [[n for n, parts in enumerate(samples) if fits(row, parts)] for row in tensor]
            places = [fitting[0] for fitting in found if len(fitting) == 1]
            if len(set(places)) == len(tensor):
                return _resolved(data, [int(given[place]) for place in places])
        return None


class BatchRows:
    def __init__(self) -> None:
        self._drawn: weakref.WeakKeyDictionary[Any, deque[Any]] = weakref.WeakKeyDictionary()
        self._latest: deque[Drawn] = deque(maxlen=_KEPT)

    def drew(self, iterator: Any, given: Any) -> None:
        """The sampler gave the rows of a batch; batches come in this order."""
        if getattr(iterator, "_in_order", True):
            known = self._drawn.get(iterator)
            if known is None:
                known = self._drawn[iterator] = deque(maxlen=_MOST)
            known.append(given)

    def came(self, iterator: Any, value: Any) -> None:
        known = self._drawn.get(iterator)
        if known:
            self._latest.append(Drawn(iterator, value, known.popleft()))
        elif self.of(value) is not None:  # the identity of one that is gone came again
            self._latest.clear()

    def begins_again(self, iterator: Any) -> None:
        """Persistent workers keep their iterator: what was drawn of the epoch before is over."""
        self._drawn.pop(iterator, None)

    def of(self, value: Any) -> Drawn | None:
        return next((one for one in reversed(self._latest) if one.value == id(value)), None)


def _resolved(data: Any, numbers: list[int]) -> Rows:
    """Through subsets, to the data set that holds the rows."""
    while isinstance(data, Subset):
        numbers = [int(data.indices[number]) for number in numbers]
        data = data.dataset
    return ("" if data is None else type(data).__name__, tuple(numbers))


def _is_number(row: Any) -> bool:
    return hasattr(row, "__index__") and not isinstance(row, bool)


def sample_parts(sample: Any) -> list[torch.Tensor]:
    """What a sample is made of, as flat tensors."""
    if isinstance(sample, torch.Tensor):
        return [sample.detach().reshape(-1)]
    if isinstance(sample, dict):
        return [part for value in sample.values() for part in sample_parts(value)]
    try:
        return [torch.as_tensor(sample).reshape(-1)]
    except (TypeError, ValueError, RuntimeError):
        nested = sample if isinstance(sample, Sequence) and not isinstance(sample, str) else ()
        return [part for value in nested for part in sample_parts(value)]


def fits(row: torch.Tensor, parts: list[torch.Tensor]) -> bool:
    """Equal, or what is left of the row is padding on one side."""
    flat = row.detach().reshape(-1)
    return any(
        0 < len(part) <= len(flat)
        and (_same(flat[: len(part)], part) or _same(flat[-len(part) :], part))
        for part in parts
    )


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    same: bool = torch.isclose(a.double(), b.double(), rtol=0, atol=0, equal_nan=True).all().item()  # type: ignore[assignment]
    return same

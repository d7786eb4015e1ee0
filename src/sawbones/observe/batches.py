"""Batches: shapes, value ranges, label counts and sample fingerprints of what the loop is fed."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    default_collate,
)

from sawbones.observe.batch_rows import BatchRows
from sawbones.observe.fingerprints import batch_fingerprints, tensors_in
from sawbones.schema import Batch

_SAMPLED_BATCHES = 30
FULL_BATCHES = 500  # fingerprints and shapes of every batch up to here, then of every 20th
_COUNTED_BATCHES = 200  # label counts of every batch up to here, then of every 10th
_MAX_CLASSES = 64
_MAX_LOADERS = 256
_DATASETS = 8
_COMPARED_VALUES = 2048
_AT_RANDOM = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)
_MOST_BITS = 24.0  # of a float32


class BatchLog:
    def __init__(self, write: Callable[[int, Batch], None], full: int = FULL_BATCHES) -> None:
        self._write = write
        self._full = full
        self._every = 20  # batches, after those that are recorded in full
        self._count = 0
        self._loaders: dict[
            int, tuple[weakref.ref[Any], int]
        ] = {}  # by identity, which is used again once a loader is gone
        self._num_loaders = 0
        self._num_fetched = 0
        self._workers: dict[int, tuple[Any, int]] = {}
        self._datasets: dict[
            int, Any
        ] = {}  # of the latest few loaders, until it is known which one is trained on
        self._trained_on: int | None = None  # the first loader whose batches were trained on
        self._iterators: weakref.WeakKeyDictionary[Any, tuple[int, int]] = (
            weakref.WeakKeyDictionary()
        )
        self._epochs: dict[int, int] = {}
        # source, wait, value, epoch: phase not known yet. Two, where a loader is read ahead of its
        # loop, as that of Accelerate is.
        self._held: list[tuple[str, float, Any, int]] = []
        self.latest: Any = None  # the value of the batch in progress, for the crash report
        self.rows = BatchRows()
        self.loader_seen = False
        self._source = ""  # of the latest batch of a loader
        self._learnt_from: set[str] = set()
        self._drawing: set[str] = set()  # loaders that draw examples and put them side by side
        self.on_batch: Callable[[int, Batch], None] | None = None  # for the comparison of ranks

    def sample_from_here(self) -> None:
        """Steps are so short that a record of every 20th batch would be felt, too."""
        self._full = self._count
        self._every = 50

    @property
    def count(self) -> int:
        """How many batches there were: the number of the next one."""
        return self._count

    def loader_index(self, loader: Any) -> int:
        known = self._loaders.get(id(loader))
        if known is not None and known[0]() is loader:
            return known[1]
        index = self._num_loaders
        self._num_loaders += 1
        if len(self._loaders) >= _MAX_LOADERS:  # one loader per epoch, for thousands of epochs
            self._loaders = {
                key: (ref, i) for key, (ref, i) in self._loaders.items() if ref() is not None
            }
        self._loaders[id(loader)] = (weakref.ref(loader), index)
        if self._trained_on is None:
            self._datasets[index] = getattr(loader, "dataset", None)
            if len(self._workers) < 64:
                self._workers[index] = (
                    getattr(loader, "worker_init_fn", None),
                    int(getattr(loader, "num_workers", 0)),
                )
            if len(self._datasets) > _DATASETS:
                del self._datasets[next(iter(self._datasets))]
        return index

    def training_loader(self) -> tuple[Any, Any, int] | None:
        """(data set, worker_init_fn, number of workers) of the loader that is trained on."""
        dataset = self.training_dataset()
        return (
            (dataset, *self._workers.get(self._trained_on or 0, (None, 0)))
            if dataset is not None
            else None
        )

    def training_dataset(self) -> Any:
        return self._datasets.get(self._trained_on) if self._trained_on is not None else None

    def started(self, loader: Any, iterator: Any) -> None:
        index = self.loader_index(loader)
        self._epochs[index] = self._epochs.get(index, -1) + 1
        if _draws(loader):
            self._drawing.add(f"loader:{index}")
        try:
            self._iterators[iterator] = (index, self._epochs[index])
        except TypeError:
            pass  # an iterator that cannot be referenced weakly

    def fetched(
        self, iterator: Any, wait_s: float, value: Any, step: int, microstep: int, phase: str
    ) -> int:
        """Keeps the batch until the next forward says whether it is for training."""
        if len(self._held) > 1:
            self._settle_first(1, step, microstep, phase)
        loader, epoch = self._iterators.get(iterator, (-1, 0))
        self._held.append((f"loader:{loader}", wait_s * 1e3, value, epoch))
        self.latest = value
        self._num_fetched += 1
        self.loader_seen = True
        self._source = f"loader:{loader}"
        return loader

    def passed(self, value: Any) -> bool:
        """A batch of the latest loader, or one made by hand, that need not be recorded; False where
        it has to be.
        """
        if self._count < self._full or self._count % self._every == 0:
            return False
        self._count += 1
        self._num_fetched += 1
        self.latest = value
        return True

    def learnt(self) -> None:
        """A backward pass began: the loader of the latest batch is one for training."""
        self._learnt_from.add(self._source)

    @property
    def loaded(self) -> Any:
        """The batch in progress, where it came out of a loader."""
        return self.latest if self.loader_seen else None

    @property
    def drawn(self) -> tuple[int, list[torch.Tensor]]:
        """The number of the batch in progress, and its tensors where a loader drew the examples in
        no order and put them side by side along the first dimension of each.
        """
        batch = self.loaded if self._source in self._drawing else None
        return self._num_fetched, [tensor for _, tensor in tensors_in(batch)]

    @property
    def source(self) -> str:
        """The loader of the latest batch, "" before there was one."""
        return self._source

    @property
    def is_held_out(self) -> bool:
        """Whether the latest batch is of a loader that nothing was learnt from, while there is
        another for that.
        """
        return (
            bool(self._learnt_from) and self.loader_seen and self._source not in self._learnt_from
        )

    def reached_model(self, value: Any, step: int, microstep: int, phase: str) -> None:
        """A top-level forward began: the batch in hand belongs to its phase; without a loader its
        inputs are the batch.
        """
        self.turn_to(value)
        if self._held:
            values = [held[2] for held in self._held]
            num = next((i for i, v in enumerate(values, 1) if v is self.latest), len(values))
            self._settle_first(num, step, microstep, phase)
        elif not self.loader_seen:
            self.latest = value
            self._record("model", 0.0, value, 0, step, microstep, phase)

    def turn_to(self, given: Any) -> None:
        """The batch that a model is given is the one in progress; a loader may be one ahead of
        it.
        """
        if not self._held or (len(self._held) == 1 and self._held[0][2] is self.latest):
            return
        mine = _storages(given)
        found = [held for held in self._held if mine & _storages(held[2])]
        if not found and len({source for source, *_ in self._held}) == 1:
            found = self._held  # made of one of them: one after the other
        if found:
            self._source, _, self.latest, _ = found[0]

    def settle(self, step: int, microstep: int, phase: str) -> None:
        self._settle_first(len(self._held), step, microstep, phase)

    def _settle_first(self, num: int, step: int, microstep: int, phase: str) -> None:
        settled, self._held = self._held[:num], self._held[num:]
        for source, wait_ms, value, epoch in settled:
            if phase == "train" and self._trained_on is None and source != "loader:-1":
                self._trained_on = int(source.removeprefix("loader:"))
                self._datasets = {i: d for i, d in self._datasets.items() if i == self._trained_on}
            self._record(source, wait_ms, value, epoch, step, microstep, phase)

    def _record(
        self,
        source: str,
        wait_ms: float,
        value: Any,
        epoch: int,
        step: int,
        microstep: int,
        phase: str,
    ) -> None:
        index = self._count
        self._count += 1
        if index >= self._full and index % self._every:
            return
        found = tensors_in(value)
        sampled = index < _SAMPLED_BATCHES or index % 50 == 0
        counted = index < _COUNTED_BATCHES or index % 10 == 0
        facts = tuple(describe(path, tensor, sampled, counted) for path, tensor in found)
        prints = batch_fingerprints([tensor for _, tensor in found])
        batch = Batch(step, microstep, phase, source, wait_ms, facts, prints, epoch)
        self._write(index, batch)
        if self.on_batch is not None:
            self.on_batch(index, batch)


def _draws(loader: Any) -> bool:
    sampler = getattr(loader, "sampler", None)
    at_random = isinstance(sampler, _AT_RANDOM) or (
        isinstance(sampler, DistributedSampler) and sampler.shuffle
    )
    side_by_side = getattr(loader, "collate_fn", None) is default_collate
    return at_random and side_by_side and type(loader.batch_sampler) is BatchSampler


def describe(path: str, tensor: torch.Tensor, values: bool, counted: bool = True) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "path": path,
        "shape": list(tensor.shape),
        "dtype": dtype_name(tensor.dtype),
    }
    if tensor.grad_fn is not None:
        facts["from_graph"] = True  # made by what is being trained, and fed back to it
    if tensor.device.type != "cpu" or tensor.numel() == 0 or tensor.layout is not torch.strided:
        return facts
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return facts  # inside of vmap or grad there are no values to read
    plain = tensor.detach()
    if counted and _is_label(plain):
        ids, counts = np.unique(plain.numpy(), return_counts=True)
        if len(ids) <= _MAX_CLASSES:
            facts["counts"] = {
                str(i): c for i, c in zip(ids.tolist(), counts.tolist(), strict=True)
            }
    # A sum is not finite as soon as one value is not: what would spoil a run is never missed for
    # want of sampling.
    broken = plain.dtype.is_floating_point and not math.isfinite(plain.sum().item())
    if (values or broken) and plain.dtype is not torch.bool and not plain.dtype.is_complex:
        facts.update(value_range(plain))
    return facts


def value_range(plain: torch.Tensor) -> dict[str, Any]:
    if torch._C._functorch.is_functorch_wrapped_tensor(plain):
        return {}
    sample = plain.flatten()
    if sample.numel() > 1 << 20:
        sample = sample[:: sample.numel() // (1 << 20) + 1]
    wide = sample.to(torch.float64)
    # a sum that is finite says it of all values, without a mask and a copy
    is_whole = not plain.dtype.is_floating_point or math.isfinite(float(wide.sum()))
    finite = wide if is_whole else wide[torch.isfinite(wide)]
    facts: dict[str, Any] = {"nonfinite": int(wide.numel() - finite.numel())}
    if finite.numel():
        low, high = torch.aminmax(finite)
        facts |= {"min": float(low), "max": float(high), "mean": float(finite.mean())}
        facts["std"] = float(finite.std()) if finite.numel() > 1 else 0.0
        facts["bits"] = coincidence_bits(finite.numpy())
    if plain.dim() > 1 and plain.shape[0] <= _COMPARED_VALUES:
        facts["two_kinds"] = rows_of_two_kinds(plain)
    return facts


def rows_of_two_kinds(plain: torch.Tensor) -> float:
    """Share of the rows that hold two different values at most."""
    rows = plain.flatten(1)
    low, high = rows.amin(1, keepdim=True), rows.amax(1, keepdim=True)
    return float(((rows == low) | (rows == high)).all(1).double().mean())


def coincidence_bits(values: npt.NDArray[np.float64]) -> float:
    """How seldom two values are equal, as a power of one half: 1 for a fair coin, 0 for a constant,
    the most where no two of the values are.
    """
    some = values[:: len(values) // _COMPARED_VALUES + 1]
    counts = np.unique(some, return_counts=True)[1].astype(np.float64)
    pairs = len(some) * (len(some) - 1.0)
    equal = float((counts * (counts - 1)).sum())
    return math.log2(pairs / equal) if equal else _MOST_BITS


def _is_label(plain: torch.Tensor) -> bool:
    whole = not plain.dtype.is_floating_point and not plain.dtype.is_complex
    return whole and (plain.dim() == 1 or (plain.dim() == 2 and plain.shape[1] == 1))


@cache
def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def shapes_of(values: Sequence[tuple[str, torch.Tensor]]) -> list[dict[str, Any]]:
    return [
        {"path": path, "shape": list(t.shape), "dtype": dtype_name(t.dtype)}
        for path, t in values[:16]
    ]


def _storages(value: Any) -> set[int]:
    found = (tensor for _, tensor in tensors_in(value) if tensor.layout is torch.strided)
    return {tensor.untyped_storage().data_ptr() for tensor in found if tensor.numel()}

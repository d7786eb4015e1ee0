"""Whether a data set draws at random when a sample is read, and whether loader workers would draw
the same.

A worker gets a copy of the data set and its own seeds. Two copies are made here, seeded as two
workers (and as one worker in two epochs) would be, and asked for the same samples. Everything
happens after the run; the random streams are put back.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset
from torch.utils.data._utils import worker as worker_module

from sawbones.observe.fingerprints import tensors_in
from sawbones.observe.random_streams import seed_streams, streams_put_back
from sawbones.observe.signals.label_probe import probe_pairs, split_sample
from sawbones.observe.signals.mask_fit import picture_and_map, probe_maps
from sawbones.schema.labels import DrawnAlike, DrawsHeld, MapFit, Redraw

NUM_SAMPLES = 12
MAX_SECONDS = 3.0
MAX_PROBED = 300
MAX_MAPS = 64
MAX_NUMBERS = 32  # a longer label is a picture or a series, not a few numbers
MAX_PLACES = 4


def probe_redraw(
    dataset: Any, init: Callable[[int], Any] | None, num_workers: int
) -> Redraw | None:
    if isinstance(dataset, IterableDataset):
        with streams_put_back():
            try:
                return _compare_streams(dataset, init, num_workers) if num_workers >= 2 else None
            except Exception:  # as below
                return None
    try:
        size = len(dataset)
    except (TypeError, NotImplementedError):
        return None
    if size < 2:
        return None
    indices = np.linspace(0, size - 1, min(NUM_SAMPLES, size)).astype(int).tolist()
    with streams_put_back():
        try:
            return _compare(dataset, init, num_workers, indices)
        except Exception:  # a data set that cannot be copied, or whose files are gone by now
            return None


def _compare(
    dataset: Any, init: Callable[[int], Any] | None, num_workers: int, indices: list[int]
) -> Redraw | None:
    ends = time.perf_counter() + MAX_SECONDS
    began = time.perf_counter()
    # The user's own object keeps the state of its generators, and workers get it unread: one that
    # makes its generator at the first
    # read must make it as a worker.
    unread, dataset = dataset, copy.deepcopy(dataset)
    once = _draw(dataset, indices)
    again = _draw(dataset, indices)
    if once is None or again is None or time.perf_counter() - began > MAX_SECONDS / 3:
        return None
    labels = [s[-1:] for s in once], [s[-1:] for s in again]
    found = Redraw(
        len(indices),
        num_workers,
        changed=_differ(once, again),
        label_changed=_differ(*labels) if len(once[0]) > 1 else 0.0,
        spread=_spread(once, again),
    )
    if found.changed >= 0.25:
        fixed = found.label_changed == 0.0  # a mask that moves as well may move another way
        found = replace(found, probes=_probes(dataset) if fixed else None, maps=_maps(dataset))
    if found.changed < 0.5 or num_workers < 1 or time.perf_counter() > ends:
        return found
    workers = [
        _as_worker(unread, init, number, 1000, max(num_workers, 2), indices) for number in (0, 1)
    ]
    epoch = _as_worker(unread, init, 0, 9000, max(num_workers, 2), indices)
    if workers[0] is None or workers[1] is None or epoch is None:
        return found
    shares = (1.0 - _differ(workers[0], other) for other in (workers[1], epoch))
    return replace(found, alike=DrawnAlike(*shares))


def _probes(dataset: Any) -> DrawsHeld | None:
    """What inputs say about their labels as they are drawn, and with every sample drawn from one
    state of the random streams.

    Of a label of several numbers (a box, a pose) the one that loses most by the draws.
    """
    size = min(len(dataset), MAX_PROBED)
    # In no order of their own, so that a slow data set may be left part of the way.
    indices = (
        np.random.default_rng(0)
        .permutation(np.linspace(0, len(dataset) - 1, size).astype(int))
        .tolist()
    )
    read: dict[str, tuple[list[Any], list[list[float]]]] = {}
    for name in ("free", "held"):
        inputs, labels = [], []
        ends = time.perf_counter() + MAX_SECONDS / 3
        for i in indices:
            if name == "held":
                seed_streams(1234)
            pair = _labelled(dataset[i])
            if pair is None:
                return None
            inputs.append(pair[0])
            labels.append(pair[1])
            if time.perf_counter() > ends:
                break
        indices = indices[: len(inputs)]
        read[name] = (inputs, labels)
    read = {
        name: (inputs[: len(indices)], labels[: len(indices)])
        for name, (inputs, labels) in read.items()
    }
    if (
        len(indices) < 100
        or len({len(label) for _, labels in read.values() for label in labels}) != 1
    ):
        return None
    found = []
    for place in range(min(len(read["free"][1][0]), MAX_PLACES)):
        scores = {
            name: probe_pairs(x, [label[place] for label in y], num_in_row=0)
            for name, (x, y) in read.items()
        }
        free, held = scores["free"], scores["held"]
        if free is not None and held is not None:
            found.append(DrawsHeld(free, held, place))
    return max(found, key=lambda f: f.held.score - f.free.score, default=None)


def _maps(dataset: Any) -> MapFit | None:
    """Whether pictures as they are drawn lie under their masks."""
    size = min(len(dataset), MAX_MAPS)
    ends = time.perf_counter() + MAX_SECONDS / 3
    pairs = []
    for i in np.linspace(0, len(dataset) - 1, size).astype(int).tolist():
        pair = picture_and_map(dataset[i])
        if pair is None or time.perf_counter() > ends:
            break
        pairs.append(pair)
    return probe_maps(pairs)


def _labelled(sample: Any) -> tuple[Any, list[float]] | None:
    """Input and label of a sample; the label may be a short vector."""
    pair = split_sample(sample)
    if pair is not None:
        return pair[0], [float(pair[1])]
    tensors = [t for _, t in tensors_in(sample)]
    if (
        len(tensors) != 2
        or not tensors[1].is_floating_point()
        or not 2 <= tensors[1].numel() <= MAX_NUMBERS
    ):
        return None
    return tensors[0], tensors[1].flatten().tolist()


def _compare_streams(
    dataset: Any, init: Callable[[int], Any] | None, num_workers: int
) -> Redraw | None:
    """What two workers would read from a stream first."""
    began = time.perf_counter()
    first = _as_worker(dataset, init, 0, 1000, num_workers, None)
    if first is None or time.perf_counter() - began > MAX_SECONDS / 3:
        return None
    second = _as_worker(dataset, init, 1, 1000, num_workers, None)
    if second is None or len(first) != len(second) or len(first) < 4:
        return None
    alike = DrawnAlike(1.0 - _differ(first, second))
    return Redraw(len(first), num_workers, stream=True, alike=alike)


def _as_worker(
    dataset: Any,
    init: Any,
    number: int,
    base_seed: int,
    num_workers: int,
    indices: list[int] | None,
) -> Any:
    own = copy.deepcopy(dataset)
    seed = base_seed + number
    seed_streams(seed)
    before = worker_module._worker_info
    worker_module._worker_info = worker_module.WorkerInfo(
        id=number, num_workers=num_workers, seed=seed, dataset=own
    )
    try:
        if init is not None:
            init(number)
        return _draw(own, indices)
    finally:
        worker_module._worker_info = before


def _draw(dataset: Any, indices: list[int] | None) -> list[list[Any]] | None:
    """The samples at these places; without places, the first of a stream."""
    samples = []
    for sample in (
        islice(iter(dataset), NUM_SAMPLES) if indices is None else (dataset[i] for i in indices)
    ):
        values = [t.detach().clone() for _, t in tensors_in(sample)]
        if not values:
            arrays = sample if isinstance(sample, (tuple, list)) else [sample]
            values = [
                torch.as_tensor(np.asarray(a))
                for a in arrays
                if isinstance(a, (np.ndarray, int, float))
            ]
        if not values:
            return None
        samples.append(values)
    return samples


def _differ(first: list[list[Any]], second: list[list[Any]]) -> float:
    """Share of samples that are not the same in both draws."""
    return float(np.mean([not _same(a, b) for a, b in zip(first, second, strict=True)]))


def _same(first: list[Any], second: list[Any]) -> bool:
    return len(first) == len(second) and all(
        a.shape == b.shape and bool(torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)))
        for a, b in zip(first, second, strict=True)
    )


def _spread(once: list[list[Any]], again: list[list[Any]]) -> float | None:
    """Mean distance between two draws of a sample over the mean distance between different
    samples.
    """
    a, b = [s[0] for s in once], [s[0] for s in again]
    if len({tuple(t.shape) for t in (*a, *b)}) != 1:
        return None
    first, second = torch.stack(a).double().flatten(1), torch.stack(b).double().flatten(1)
    own = float((first - second).norm(dim=1).mean())
    other = float((first - first.roll(1, 0)).norm(dim=1).mean())
    return own / other if other > 0 else None

"""Which rows the samplers of loaders give, and what is said of it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import (
    DataLoader,
    RandomSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from sawbones.faults import read
from sawbones.observe.signals.drawn import DrawnRows
from sawbones.schema import Batch, Ending, Run
from sawbones.schema.loader import Loader

SIZE, EPOCHS = 200, 3
ROWS = TensorDataset(torch.arange(SIZE))


def _said(sampler) -> list[str]:
    loader = DataLoader(ROWS, batch_size=16, sampler=sampler)
    drawn = DrawnRows()
    drawn.built(loader, 0)
    for _ in range(EPOCHS):
        iterator = iter(loader)
        for rows in loader.batch_sampler:
            drawn.drew(iterator, rows)
    entry = Loader(0, size=SIZE)
    batches = tuple(Batch(e, 0, "train", entry.source, 0, (), epoch=e) for e in range(EPOCHS))
    found = drawn.record()
    run = Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        batches=batches,
        loaders=(entry,),
        drawn=tuple(found) if found else None,
    )
    return [f.status for f in read(run, "pipeline.rows-never-drawn").findings]


def test_one_weight_per_class_draws_the_first_rows_alone() -> None:
    assert _said(WeightedRandomSampler([0.1, 0.5, 0.4], num_samples=SIZE)) == ["likely"]


@pytest.mark.parametrize(
    "sampler",
    [
        WeightedRandomSampler([1.0] * 10 + [0.001] * (SIZE - 10), num_samples=SIZE),
        WeightedRandomSampler([1.0] * 90, num_samples=90),
        SubsetRandomSampler(range(20)),
        RandomSampler(ROWS, replacement=True, num_samples=4 * SIZE),
        RandomSampler(ROWS),
    ],
    ids=["uneven", "a-part-with-weights", "a-part", "with-replacement", "all"],
)
def test_samplers_that_mean_what_they_draw_are_silent(sampler) -> None:
    torch.manual_seed(0)
    assert _said(sampler) == []


class _Sampler:
    pass


def test_a_sampler_at_the_address_of_one_that_is_gone_is_counted_by_itself() -> None:
    drawn, addresses = DrawnRows(), set()
    for number in range(4):
        sampler = _Sampler()
        addresses.add(id(sampler))
        drawn.built(SimpleNamespace(_index_sampler=sampler), number)
        drawn.drew(SimpleNamespace(_index_sampler=sampler), [number, number + 1])
        del sampler  # its address is free again
    assert len(addresses) < 4
    found = drawn.record() or []
    assert [(d.loader, d.draws, d.lowest) for d in found] == [(n, 2, n) for n in range(4)]

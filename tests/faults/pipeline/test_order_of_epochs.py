"""One order in every epoch, told from loaders that shuffle for real."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from sawbones.evidence import NothingToJudge
from sawbones.faults.pipeline.no_shuffle import check as no_shuffle
from sawbones.schema import STEP_COLUMNS, Batch, Ending, Loader, Optimizer, Run, Site
from sawbones.schema.samples import Samples


def run_of(orders: list[list[int]], sampler: str = "RandomSampler", num_optimizers: int = 1) -> Run:
    """Every epoch comes from a loader of its own, in batches of eight."""
    batches = [
        Batch(0, 0, "train", f"loader:{epoch}", 0.0, (), tuple(order[k : k + 8]))
        for epoch, order in enumerate(orders)
        for k in range(0, len(order), 8)
    ]
    loaders = [Loader(k, sampler=sampler, site=Site("train.py", 12)) for k in range(len(orders))]
    return Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        steps={name: np.zeros(len(batches)) for name in STEP_COLUMNS},
        batches=tuple(batches),
        loaders=tuple(loaders),
        optimizers=tuple(
            Optimizer(k, "Adam", Site("train.py", 20 + k), ()) for k in range(num_optimizers)
        ),
    )


def shuffled(seed: int) -> list[int]:
    order = list(range(40))
    random.Random(seed).shuffle(order)
    return order


def test_a_generator_that_starts_anew_is_named_at_the_loader() -> None:
    (finding,) = no_shuffle.check(run_of([shuffled(1)] * 3))
    assert (finding.status, finding.where[0].line) == ("likely", 12)


def test_orders_that_differ_are_shuffled() -> None:
    assert list(no_shuffle.check(run_of([shuffled(1), shuffled(2), shuffled(1)]))) == []


def test_stored_order_without_a_wish_to_shuffle_is_not_judged() -> None:
    with pytest.raises(NothingToJudge, match="shuffled"):
        list(no_shuffle.check(run_of([list(range(40))] * 3, sampler="SequentialSampler")))


def test_two_models_may_see_the_same_batches() -> None:
    assert list(no_shuffle.check(run_of([shuffled(1)] * 2, num_optimizers=2))) == []


def with_levels(levels: list[tuple[float, float]]) -> Run:
    return replace(run_of([shuffled(1)]), samples=Samples(levels=tuple(levels)))


def test_targets_that_climb_from_batch_to_batch_are_sorted() -> None:
    climbing = [(float(k), k + 0.9) for k in range(12)]
    (finding,) = no_shuffle.check(with_levels(climbing * 2))
    assert "sorted by their target" in finding.title
    assert (
        list(no_shuffle.check(with_levels([(k, k + 3.0) for k, _ in climbing]))) == []
    )  # a drift: batches overlap
    mixed = [(-2.0 + 0.1 * (k % 5), 2.0 - 0.1 * (k % 3)) for k in range(30)]
    assert (
        list(no_shuffle.check(with_levels([*mixed, (-2.0, 3e4), *mixed]))) == []
    )  # one value is far outside of the others

"""Runs and data sets are judged by one rule: inputs standardised before the split, and the shares
from which samples are copies.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sawbones.faults.evaluation.leak_preprocessing import check as leak_preprocessing
from sawbones.schema import STEP_COLUMNS, Batch, Ending, Event, Run, Site, SourceLine
from sawbones.schema.fitted import FitHolder, FitSign, Fitted
from sawbones.stats.moments import Moments, joint, standardised_together
from sawbones.stats.overlaps import judged, least_share, shared_of


def run_of(train: np.ndarray, valid: np.ndarray, size: int = 32) -> Run:
    """One epoch of training batches and one evaluation, as a recorder describes them."""
    batches, events = [], []
    for source, phase, rows in (("loader:0", "train", train), ("loader:1", "eval", valid)):
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            step = len(events) if phase == "train" else len(train) // size
            facts = {"path": "[0]", "shape": list(some.shape), "dtype": "float32", "nonfinite": 0}
            facts |= {"mean": float(some.mean()), "std": float(some.std(ddof=1))}
            prints = tuple(hash(row.tobytes()) for row in some)
            batches.append(Batch(step, 0, phase, source, 0.0, (facts,), prints))
            if phase == "train":
                events.append(
                    Event(
                        len(events), "backward", step, 0, "train", 0.0, Site("train.py", 9), 0, {}
                    )
                )
    table = {name: np.zeros(len(events)) for name in STEP_COLUMNS}
    table["step"] = np.arange(len(events), dtype=float)
    return Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        events=tuple(events),
        steps=table,
        batches=tuple(batches),
    )


@pytest.mark.parametrize("by", ["both", "train", "each", "nothing"])
def test_only_inputs_standardised_by_both_parts_are_suspected(by: str) -> None:
    rng = np.random.default_rng(0)
    train, valid = rng.normal(3, 2, (320, 8)), rng.normal(3.2, 2, (96, 8))
    whole = np.concatenate([train, valid])
    if by == "both":
        train, valid = ((x - whole.mean(0)) / whole.std(0) for x in (train, valid))
    elif by == "train":
        train, valid = (
            (train - train.mean(0)) / train.std(0),
            (valid - train.mean(0)) / train.std(0),
        )
    elif by == "each":
        train, valid = ((x - x.mean(0)) / x.std(0) for x in (train, valid))
    found = list(
        leak_preprocessing.check(run_of(train.astype(np.float32), valid.astype(np.float32)))
    )
    assert [f.status for f in found] == (["suspected"] if by == "both" else [])


@pytest.mark.parametrize(("rows", "status"), [(416, ["proven"]), (320, [])])
def test_a_fit_that_saw_all_rows_is_a_proof(rows: int, status: list[str]) -> None:
    rng = np.random.default_rng(0)
    run = run_of(
        rng.normal(size=(320, 8)).astype(np.float32), rng.normal(size=(96, 8)).astype(np.float32)
    )
    sign = FitSign("standardised", 8, 8, 1e-7, 0.02)
    holder = FitHolder("StandardScaler", ("scaler",), rows)
    site = Site("train.py", 4, "load", "x = scaler.fit_transform(x)")
    line = SourceLine("fit", "fit_transform", None, site)
    seen = Fitted(320, 416, (holder,), (sign,))
    found = list(leak_preprocessing.check(replace(run, fitted=seen, source_lines=(line,))))
    assert [f.status for f in found] == status
    assert all(f.where[0].line == 4 for f in found)


def test_moments_of_parts_are_those_of_the_whole() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(1, 2, 100), rng.normal(-1, 1, 50)
    parts = [Moments(len(x), float(x.mean()), float(x.std())) for x in (a, b)]
    whole = np.concatenate([a, b])
    assert joint(parts) == Moments(150, pytest.approx(whole.mean()), pytest.approx(whole.std()))
    assert standardised_together(parts[0], parts[1:]) is None
    assert standardised_together(parts[0], []) is None


def test_shared_samples_count_from_what_chance_would_give() -> None:
    assert shared_of([1, 1, 2, 3], {1, 9}) == (1, 3)
    assert least_share(0.02, 0.4, 500, telling=True) == 0.02
    assert least_share(0.02, 0.4, 500, telling=False) > 0.42
    assert least_share(0.02, 0.4, 500, telling=False, times=3) == pytest.approx(1.2)
    assert [judged(n, 100, 5, 0.02) for n in (1, 4, 5, 89, 90)] == [
        "none",
        "none",
        "some",
        "some",
        "whole",
    ]
    assert judged(0, 0, 0, 0.0) == "none"

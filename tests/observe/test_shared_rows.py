"""Rows that a script keeps and that are one memory; and rows that only look like it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import sawbones
from sawbones.evidence import NothingToJudge
from sawbones.faults.pipeline.shared_rows.check import check
from sawbones.observe.options import Options

DIAGNOSED = Options(deep_steps=(), deep_every=0, journal=True)


def _found(tmp_path, rows_of):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with sawbones.watch(out=tmp_path / "run", options=DIAGNOSED) as watching:
        for rows in rows_of():
            model(rows).sum().backward()
            optimizer.step()
    run = watching.close()
    try:
        return list(check(run))
    except NothingToJudge:
        return []


def _journeys(keep, join):
    """Four moves of a point in an array of its own, over and over; what was seen is kept."""
    rng, kept = np.random.default_rng(0), []
    for _ in range(30):
        place = np.zeros(4, np.float32)
        for _ in range(4):
            place += 1 + rng.random(4, dtype=np.float32)
            seen = place.reshape(-1)
            torch.from_numpy(seen)
            kept.append(keep(seen))
        if len(kept) >= 24:
            yield join([kept[i] for i in rng.permutation(len(kept))[:20]])


def _stacked(rows):
    return torch.from_numpy(np.stack(rows))


def _slots():
    """A ring of slots that are filled anew; some are drawn twice."""
    rng, ring = np.random.default_rng(0), np.zeros((12, 4), np.float32)
    for number in range(60):
        ring[number % 12] = rng.random(4)
        torch.from_numpy(ring[number % 12])
        yield _stacked([ring[i] for i in rng.integers(12, size=16)])


def _prepared_slots():
    rng, ring = np.random.default_rng(0), list(np.zeros((12, 4), np.float32))
    for number in range(60):
        ring[number % 12][:] = rng.random(4)
        torch.from_numpy(ring[number % 12])
        yield _stacked([ring[i] for i in rng.integers(12, size=16)])


def _tried_actions():
    """The present state once for each action that is tried."""
    state = np.zeros(4, np.float32)
    for _ in range(30):
        state += 1
        yield _stacked([state.reshape(-1) for _ in range(16)])


@pytest.mark.parametrize("join", [_stacked, torch.tensor], ids=["stack", "tensor"])
@pytest.mark.filterwarnings("ignore:Creating a tensor from a list")
def test_views_of_one_array_that_were_kept_are_named_where_they_are_joined(tmp_path, join):
    (finding,) = _found(tmp_path, lambda: _journeys(lambda seen: seen, join))
    assert "one and the same memory" in finding.evidence[0].text


@pytest.mark.parametrize(
    "rows_of",
    [
        lambda: _journeys(lambda seen: seen.copy(), _stacked),
        lambda: _journeys(tuple, lambda rows: torch.tensor(rows)),
        _slots,
        _prepared_slots,
        _tried_actions,
    ],
    ids=["copies", "tuples", "a ring of slots", "slots made before", "a repeated state"],
)
def test_copies_slots_and_repeats_are_silent(tmp_path, rows_of):
    assert _found(tmp_path, rows_of) == []


def test_static_rows_that_are_seen_again_as_other_views_are_silent(tmp_path):
    def rows_of():
        rng, pictures, kept = np.random.default_rng(0), [], []
        pictures = [rng.random((2, 2), dtype=np.float32) for _ in range(9)]
        for _ in range(40):
            kept.append(pictures[rng.integers(9)].ravel())
            torch.from_numpy(kept[-1])
            if len(kept) >= 16:
                yield _stacked([kept[i] for i in rng.permutation(len(kept))[:16]])

    assert _found(tmp_path, rows_of) == []


def test_an_array_that_was_looked_at_can_still_be_resized(tmp_path):
    with sawbones.watch(out=tmp_path / "run", options=DIAGNOSED) as watching:
        rows = [np.zeros(4) for _ in range(8)]
        np.stack(rows)
        torch.tensor(rows[0])
        first = rows.pop(0)
        first.resize(6)
        assert len(first) == 6
    watching.close()

"""Evaluated rows that lie between two trained ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from sawbones.observe.populations.between import rows_between
from sawbones.observe.populations.judged import Judged

RNG = np.random.default_rng(1)


def _pass(rows: Any) -> Judged:
    wanted = RNG.integers(0, 2, len(rows)).astype(np.float32)
    answers = np.stack([1 - wanted, wanted], 1)
    errors = (RNG.random(len(rows)) < 0.2).astype(np.float64)
    hashes = tuple(range(len(rows)))
    return Judged(0, (), (0, 0), None, False, rows, hashes, answers, wanted, "classes", errors, 0.0)


def test_interpolated_rows_are_counted_and_the_score_without_them_is_given() -> None:
    known = RNG.normal(size=(500, 8)).astype(np.float32)
    a, b = known[:60], np.roll(known[:60], 1, axis=0)
    made = a + RNG.random((60, 1)).astype(np.float32) * (b - a) * np.float32(0.2)
    rows = np.concatenate([made, RNG.normal(size=(60, 8)).astype(np.float32)])
    # the other end is far away: it must be among the nearest for the line to be seen
    near = np.concatenate([known, (a + (b - a) * np.float32(0.3))])
    told = rows_between(_pass(rows), near)
    assert told is not None
    assert told.derived >= 50
    assert told.by_chance == 0
    assert told.new_score is not None


def test_rows_of_a_grid_or_of_few_columns_are_not_judged() -> None:
    grid = RNG.integers(0, 5, (300, 8)).astype(np.float32)
    assert rows_between(_pass(grid[:50]), grid[50:]) is None
    narrow = RNG.normal(size=(300, 3)).astype(np.float32)
    assert rows_between(_pass(narrow[:50]), narrow[50:]) is None


def test_rows_in_one_direction_are_in_line_by_chance_as_well() -> None:
    line = RNG.normal(size=(300, 1)).astype(np.float32) * np.ones((1, 6), np.float32)
    told = rows_between(_pass(line[:50]), line[50:])
    assert told is not None and told.by_chance > 0


def test_rows_of_their_own_lie_between_none() -> None:
    rows = RNG.normal(size=(400, 6)).astype(np.float32)
    told = rows_between(_pass(rows[:100]), rows[100:])
    assert told is not None and told.derived == 0


def test_waves_of_one_shape_are_nearly_in_line_and_not_interpolated() -> None:
    phases = 2 * np.pi * RNG.random((2300, 1))
    waves = np.sin(np.arange(32) * 2 * np.pi / 32 + phases).astype(np.float32)
    told = rows_between(_pass(waves[:300]), waves[300:])
    assert told is not None and told.derived == 0

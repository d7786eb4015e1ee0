"""Evaluated rows that were made from trained ones: each lies on the straight line between two of
them, to rounding. Rows of several real columns do not come to lie there by chance; interpolation
(SMOTE, a series that was filled in) puts them there, and no others nearby: rows of a smooth curve
(waves of one shape) are nearly in line with their neighbours, some by a little and some by less.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from sawbones.observe.populations.judged import Judged
from sawbones.observe.populations.log import Values
from sawbones.observe.populations.scores import score_of
from sawbones.schema.populations import DerivedRows

LEAST_COLUMNS = 4  # real ones that vary: in fewer directions rows are in line by chance
OWN_VALUES = 0.5  # of the rows that have a value of their own in a real column
MAX_ROWS = 300  # evaluated rows that are looked at
NEIGHBOURS = 12
ROUNDING = 1e-4  # distance from the line, over the length of the stretch
NEARLY = 1e-2  # the same, for rows that are nearly in line
OF_A_CURVE = 0.3  # of the rows that are not in line: so many are nearly
APART = 0.2  # of the longer distance: two neighbours beside one another lie in one direction
LEAST_TRAINED = 50

Numbers = npt.NDArray[np.float64]


def rows_between(one: Judged, trained: Values) -> DerivedRows | None:
    """Of this pass: how many rows lie between two trained ones; None where that says nothing."""
    if one.rows.shape[1] != trained.shape[1] or len(trained) < LEAST_TRAINED:
        return None
    known = np.unique(trained, axis=0)
    real = real_columns(known)
    if real.sum() < LEAST_COLUMNS or len(known) < LEAST_TRAINED:
        return None
    spread = known[:, real].std(0)
    x = (known[:, real] / spread).astype(np.float64)
    y = (one.rows[:, real] / spread).astype(np.float64)
    picked = np.linspace(0, len(y) - 1, min(MAX_ROWS, len(y))).astype(np.int64)
    off = np.array([_off_line(y[i], x) for i in picked.tolist()])
    inside = off <= ROUNDING
    if not inside.all() and np.mean(off[~inside] <= NEARLY) >= OF_A_CURVE:
        inside[:] = False
    told = DerivedRows(len(picked), int(inside.sum()), one.kind, _by_chance(x))
    if one.errors is None or not inside.any() or inside.all():
        return told
    errors = one.errors[picked]
    return replace(
        told,
        score=score_of(errors, one.kind),
        new_score=score_of(errors[~inside], one.kind),
        constant=_constant(one, picked[~inside]),
    )


def _constant(one: Judged, rows: npt.NDArray[np.int64]) -> float | None:
    """Share of the commonest class among these rows."""
    if one.kind != "classes" or one.wanted is None:
        return None
    counts = np.unique(one.wanted[rows], return_counts=True)[1]
    return float(counts.max() / counts.sum())


def real_columns(rows: Values) -> npt.NDArray[np.bool_]:
    own = np.array([len(np.unique(column)) for column in rows.T])
    finite = np.isfinite(rows).all(0)
    found: npt.NDArray[np.bool_] = finite & (own >= OWN_VALUES * len(rows))
    return found


def _off_line(row: Numbers, known: Numbers) -> float:
    """How far the directions to two of the nearest trained rows are from opposite, or the same: an
    angle, which is the distance from the line over the length.
    """
    away = known - row
    length = np.sqrt((away**2).sum(1))
    near = np.argsort(length)[: NEIGHBOURS + 1]
    near = near[length[near] > 0]
    directions = away[near] / length[near][:, None]
    cosines = directions @ directions.T
    ends = away[near]
    gaps = np.sqrt(((ends[:, None] - ends[None]) ** 2).sum(-1))
    cosines[gaps < APART * np.maximum.outer(length[near], length[near])] = 0.0
    # 1 - cos is half the square of the angle
    nearest = float((1 - np.abs(cosines)).min(initial=1.0))
    return float(np.sqrt(2 * max(nearest - 1e-9, 0.0)))


def _by_chance(known: Numbers) -> int:
    """Of trained rows taken at random, how many are in line with two others taken at random."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(MAX_ROWS):
        row, *others = known[rng.choice(len(known), 1 + NEIGHBOURS, replace=False)]
        hits += _off_line(row, np.array(others)) <= ROUNDING
    return hits

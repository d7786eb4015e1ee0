"""Two passes over the same rows that do not agree: by a copy of the model, or with rows that were
prepared in another way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from sawbones.observe.populations.judged import Judged
from sawbones.observe.populations.shifting import ERROR_RATE
from sawbones.schema.populations import PreparedColumn, ServedPair

MAX_COLUMNS = 512
SAME_COLUMN = 0.999  # correlation of ranks over the rows: one follows the other
MOST_COLUMNS = 0.6  # of those that vary, which must be the same in this sense
CLOSE = 1e-4  # relative difference of values: rounding of halves and of fused sums
COPY_NAMES = 0.9  # share of the trained model's tensors that a copy has
COPY_COSINE = (
    0.3  # of its matrices with the trained ones: 0 for another start, even 2 bits keep 0.6
)

Rows = npt.NDArray[np.float32]


def served_pairs(found: Sequence[Judged]) -> list[ServedPair]:
    """Passes of a copy, or over the same rows prepared otherwise, beside that of the trained
    model.
    """
    own = [one for one in found if one.likeness is None]
    told = []
    for trained in own:
        for served in found:
            if served is trained or (served.likeness is None and served.module != trained.module):
                continue
            pair = _compared(trained, served)
            if pair is not None:
                told.append(pair)
    told.sort(key=lambda pair: (-pair.apart, pair.trained, pair.served))
    return told[:6]


def _compared(trained: Judged, served: Judged) -> ServedPair | None:
    if trained.answers.shape[1] != served.answers.shape[1]:
        return None
    is_copy = served.likeness is not None
    if is_copy and not _is_copy(served):
        return None
    order, prepared = _same_rows(trained, served)
    if order is None or (not is_copy and not prepared):
        return None
    ours, theirs = trained.answers[order], served.answers
    if trained.kind == "classes" or ours.shape[1] > 1:
        apart = float(np.mean(trained.given[order] != served.given))
    else:
        spread = float(ours.std()) or 1.0
        apart = float(np.abs(ours - theirs).mean() / spread)
    if served.errors is None and trained.kind == "classes" and trained.wanted is not None:
        wrong = (served.given != trained.wanted[order]).astype(np.float64)
        served = replace(served, kind="classes", errors=wrong)
    return ServedPair(
        trained.number,
        served.number,
        len(served.hashes),
        "classes" if ours.shape[1] > 1 else trained.kind,
        apart,
        (_score(trained, order), _score(served, np.arange(len(served.hashes)))),
        _least_loss(trained, served, order),
        tuple(prepared[:3]),
        len(prepared),
        trained.rows.shape[1],
        served.is_training and not trained.is_training,
        served.likeness,
    )


def _is_copy(served: Judged) -> bool:
    like = served.likeness
    if like is None or like.shared < COPY_NAMES:
        return False
    return like.cosine is None or like.cosine >= COPY_COSINE


def _same_rows(
    trained: Judged, served: Judged
) -> tuple[npt.NDArray[np.int64] | None, list[PreparedColumn]]:
    """(for each served row the trained model's own, or None; the columns that were prepared
    otherwise).
    """
    places = {h: i for i, h in enumerate(trained.hashes)}
    if all(h in places for h in served.hashes):
        return np.array([places[h] for h in served.hashes], np.int64), []
    if trained.rows.shape != served.rows.shape or (
        trained.wanted is not None
        and served.wanted is not None
        and not np.array_equal(trained.wanted, served.wanted)
    ):
        return None, []
    same, changed = _columns_alike(trained.rows, served.rows)
    if not changed or same < MOST_COLUMNS:
        return None, []
    return np.arange(len(served.hashes)), changed


def _columns_alike(ours: Rows, theirs: Rows) -> tuple[float, list[PreparedColumn]]:
    """(share of the columns that follow the other's, in their own place or in another one; those
    that differ, nothing where one of them follows none).
    """
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    spread = a.std(0) * b.std(0)
    columns = np.flatnonzero(np.isfinite(spread) & (spread > 0)).tolist()
    if not columns:
        return 0.0, []
    ranks_a = _ranks(a[:, columns])
    columns = columns[:: 1 + len(columns) // MAX_COLUMNS]  # of theirs some, and all of ours
    ranks_b = _ranks(b[:, columns])
    follows = np.abs(ranks_a.T @ ranks_b) / len(a)  # one of ours, one of theirs
    changed, strange = [], 0
    for i, column in enumerate(columns):
        size = float(np.abs(a[:, column]).max()) or 1.0
        if float(np.abs(a[:, column] - b[:, column]).max()) / size <= CLOSE:
            continue
        factor = float(b[:, column].std() / a[:, column].std())
        moved = float((b[:, column].mean() - a[:, column].mean()) / a[:, column].std())
        changed.append(PreparedColumn(column, factor, moved))
        strange += follows[:, i].max() < SAME_COLUMN
    changed.sort(key=lambda c: -max(abs(math.log(max(c.factor, 1e-9))), abs(c.shift)))
    if strange:  # noise, or a column that was shuffled: no preparation
        return 0.0, []
    return float(np.mean(follows.max(0) >= SAME_COLUMN)), changed


def _ranks(columns: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Places in the order of their column, equal values sharing one, with mean 0 and spread 1."""
    ranks = np.empty_like(columns)
    for i in range(columns.shape[1]):
        _, place, counts = np.unique(columns[:, i], return_inverse=True, return_counts=True)
        ranks[:, i] = (np.cumsum(counts) - (counts - 1) / 2)[place]
    scaled: npt.NDArray[np.float64] = (ranks - ranks.mean(0)) / ranks.std(0)
    return scaled


def _score(trained: Judged, order: npt.NDArray[np.int64]) -> float:
    if trained.errors is None:
        return math.nan
    mean = float(trained.errors[order].mean())
    return 1 - mean if trained.kind == "classes" else mean


def _least_loss(trained: Judged, served: Judged, order: npt.NDArray[np.int64]) -> float | None:
    """By how much the served answers are worse, row by row, at the least; None where it is not
    known what was asked for.
    """
    if trained.errors is None or served.errors is None:
        return None
    worse = served.errors - trained.errors[order]
    z = NormalDist().inv_cdf(1 - ERROR_RATE / 2)
    size = 1.0 if trained.kind == "classes" else max(float(trained.errors.mean()), 1e-12)
    return float((worse.mean() - z * worse.std() / math.sqrt(len(worse))) / size)

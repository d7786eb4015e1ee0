"""Whether the rows of a table are moments of one process, in the order in which they stand: each is
like the one before it, more than rows that are merely sorted by their label are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from sawbones.observe.sources.containers import FEW_KINDS, Numbers

LEAST_ROWS = 100
LIKE_THE_LAST = 0.5  # correlation of a row with the one before it
SMOOTH = 0.7  # the same for the steps from row to row: a formula of the row number has it near 1
MAX_COLUMNS = 64
BESIDE = 3  # rows before and after, among which trained ones are looked for
INTERLEAVED = 0.5  # of the evaluated rows, that have trained ones before and after

Column = npt.NDArray[np.float64]


def is_series(tables: Iterable[Numbers], labels: Numbers | None) -> bool:
    """Whether one column of these tables is like a process over time."""
    for table in tables:
        for i in range(min(table.shape[1], MAX_COLUMNS)):
            column = table[:, i].astype(np.float64)
            known = np.isfinite(column)
            if known.sum() < LEAST_ROWS or len(np.unique(column[known])) <= FEW_KINDS:
                continue
            of_label = labels[known] if labels is not None else None
            if _is_process(_without(column[known], of_label)):
                return True
    return False


def _is_process(column: Column) -> bool:
    steps = np.diff(column)
    if not np.any(steps) or np.all(steps >= 0) or np.all(steps <= 0):
        return False  # sorted, or a count of the rows
    return _lag(column) >= LIKE_THE_LAST and _lag(steps) < SMOOTH


def _lag(column: Column) -> float:
    a, b = column[:-1], column[1:]
    if a.std() == 0 or b.std() == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def _without(column: Column, labels: Numbers | None) -> Column:
    """What the label does not say of it: its distance from the mean of its class, or from the best
    line through a quantity.
    """
    if labels is None or not np.all(np.isfinite(labels)):
        return column
    kinds, codes = np.unique(labels, return_inverse=True)
    if len(kinds) <= FEW_KINDS:
        means = np.bincount(codes, column) / np.bincount(codes)
        return np.asarray(column - means[codes])
    y = labels.astype(np.float64) - labels.mean()
    slope = float(np.mean(y * (column - column.mean()))) / max(float(y.var()), 1e-30)
    return np.asarray(column - slope * y)


def is_interleaved(trained: Sequence[int], evaluated: Sequence[int]) -> bool:
    """Whether most evaluated rows stand between trained ones, right before and after."""
    known = np.array(sorted(trained), np.int64)
    held = np.array(evaluated, np.int64)
    if not len(known) or not len(held):
        return False
    after = np.searchsorted(known, held)
    inside = (after > 0) & (after < len(known))
    before = known[np.maximum(after - 1, 0)]
    behind = known[np.minimum(after, len(known) - 1)]
    near = inside & (held - before <= BESIDE) & (behind - held <= BESIDE)
    return float(near.mean()) >= INTERLEAVED

"""Columns that are filled in for one class alone: most rows have one common value, the rest have
amounts of their own, and all of these belong to one class. Such a field is written when the event
takes place; a cause has exceptions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sawbones.observe.sources.containers import Numbers

COMMON = 0.5  # share of the rows that have the common value, at least
LEAST_FILLED = 50  # rows that have another one, all of one class
LEAST_AMOUNTS = 20  # different values among them: words and flags of one class are no amounts
MOST_OF_CLASS = 0.6  # share of that class among all rows


def is_filled_for_one_class(column: Numbers, labels: Numbers) -> int:
    """How many rows are filled in, all of one class; 0 where it is not such a column."""
    known = np.isfinite(labels)
    values, labels = column[known], labels[known]
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) != 2 or not len(values):
        return 0
    filled = _filled(values)
    amounts = values[filled]
    if len(amounts) < LEAST_FILLED or len(np.unique(amounts)) < LEAST_AMOUNTS:
        return 0
    of_filled = np.unique(labels[filled])
    if len(of_filled) != 1:
        return 0
    share = float(counts[classes == of_filled[0]][0] / counts.sum())
    return len(amounts) if share <= MOST_OF_CLASS else 0


def _filled(values: Numbers) -> npt.NDArray[np.bool_]:
    """Rows without the common value, which may be a missing one; none where there is none."""
    missing = np.isnan(values)
    if missing.mean() >= COMMON:
        return np.asarray(~missing)
    kinds, counts = np.unique(values[~missing], return_counts=True)
    if not len(kinds) or counts.max() < COMMON * len(values):
        return np.zeros(len(values), np.bool_)
    return np.asarray(~missing & (values != kinds[counts.argmax()]))

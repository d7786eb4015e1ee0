"""Whether a column is what a model is asked for: the very values, or the same scaled, or the same
classes under other numbers.
"""

from __future__ import annotations

import numpy as np

from sawbones.observe.sources.containers import FEW_KINDS, Numbers

ROUNDING = 1e-4  # of the spread of the targets
ROWS_OF_A_CLASS = 5.0
MAX_CLASSES = 64


def is_answer(column: Numbers, targets: Numbers) -> bool:
    """The column itself, bit for bit."""
    return bool(np.array_equal(column, targets))


def follows_answer(column: Numbers, targets: Numbers) -> bool:
    """The column scaled and moved, or its kinds numbered in another way."""
    if not np.all(np.isfinite(column)) or not np.all(np.isfinite(targets)):
        return False
    kinds = len(np.unique(targets))
    if kinds <= min(MAX_CLASSES, len(targets) / ROWS_OF_A_CLASS):
        pairs = np.unique(np.stack([column, targets], axis=1), axis=0)
        return len(pairs) == kinds == len(np.unique(column))
    if kinds <= FEW_KINDS:
        return False
    x, y = column.astype(np.float64), targets.astype(np.float64)
    spread = x.std()
    if spread == 0:
        return False
    slope = float(np.mean((x - x.mean()) * (y - y.mean()))) / float(spread) ** 2
    off = y - y.mean() - slope * (x - x.mean())
    return bool(np.abs(off).max() <= ROUNDING * y.std())


def as_asked(values: Numbers, column: Numbers, targets: Numbers) -> Numbers:
    """Other values of a column that follows the answer, as the model would be asked for them."""
    if is_answer(column, targets):
        return values
    kinds, places = np.unique(column, return_index=True)
    if len(kinds) <= MAX_CLASSES:
        found = np.searchsorted(kinds, values).clip(0, len(kinds) - 1)
        wanted = np.where(kinds[found] == values, targets[places][found], np.nan)
        return wanted.astype(np.float32)
    slope, offset = np.polyfit(column.astype(np.float64), targets.astype(np.float64), 1)
    return np.asarray(values * slope + offset, np.float32)

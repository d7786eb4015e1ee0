"""Rows whose labels may change places without a split by classes taking notice.

A split by classes (a stratified one of scikit-learn, or rows shuffled class by class by hand) never
looks at the number of a row: it deals out the places in the list of the rows of each class. Two rows
can exchange their labels where no row between them is of either class: each takes the place of the
other in both lists, and every other row stays at its own. If both are rows that are only evaluated,
the training rows are the same ones in the same order, whatever is drawn. Pairs that do not reach
into one another leave that true of all of them together.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]
LEAST_PAIRS = 5  # fewer hardly change anything that is made from the labels of all rows


def neighbours(labels: npt.NDArray[np.generic], rows: Places) -> tuple[Places, Places]:
    """(rows, for each the row that its label is taken from); nothing where there are too few."""
    _, classes = np.unique(labels, return_inverse=True)
    allowed = np.zeros(len(classes), bool)
    allowed[rows] = True
    latest: dict[int, int] = {}  # class -> its latest row
    ends = -1  # the last row of the latest pair
    pairs: list[tuple[int, int]] = []
    for row, own in enumerate(classes.tolist()):
        last = latest.get(own, -1)
        # of another class, no later row of which or of the own one stands before this row
        before = [r for other, r in latest.items() if other != own and r > max(last, ends)]
        fitting = [r for r in before if allowed[r]]
        if allowed[row] and fitting and row > ends:
            pairs.append((max(fitting), row))
            ends = row
        latest[own] = row
    if len(pairs) < LEAST_PAIRS:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    changed = np.array(pairs, np.int64)
    return changed.reshape(-1), changed[:, ::-1].reshape(-1)

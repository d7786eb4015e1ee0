"""Partners of least cost: each row of a table gets a column of its own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Costs = npt.NDArray[np.float64]


def assigned(costs: Costs) -> npt.NDArray[np.int64]:
    """The column of each row, no column twice, so that the sum is least (Kuhn's method, with
    shortest paths). There are at least as many columns as rows.
    """
    num, width = costs.shape
    rows_of, columns_of = np.zeros(num + 1), np.zeros(width + 1)  # prices
    taken = np.zeros(width + 1, np.int64)  # the row, from 1, that a column belongs to
    came_from = np.zeros(width + 1, np.int64)
    for row in range(1, num + 1):
        taken[0], column = row, 0
        least = np.full(width + 1, np.inf)
        seen = np.zeros(width + 1, bool)
        while taken[column]:
            seen[column] = True
            here = taken[column]
            offered = costs[here - 1] - rows_of[here] - columns_of[1:]
            better = ~seen[1:] & (offered < least[1:])
            least[1:][better] = offered[better]
            came_from[1:][better] = column
            nearest = int(np.where(seen, np.inf, least)[1:].argmin()) + 1
            step = least[nearest]
            rows_of[taken[seen]] += step
            columns_of[seen] -= step
            least[~seen] -= step
            column = nearest
        while column:
            taken[column] = taken[came_from[column]]
            column = int(came_from[column])
    found = np.zeros(num, np.int64)
    owned = taken[1:] > 0
    found[taken[1:][owned] - 1] = np.flatnonzero(owned)
    return found

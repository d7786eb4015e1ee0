"""Rows for the question whether training and evaluation prepare a row alike: which of them could be
made copies of one another without moving a label, and where the model meets them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sawbones.observe.sources.containers import Numbers

GROUPS = 8
LEAST_GROUPS = 4
MOST_CLASSES = 20  # labels with more values are a quantity

Groups = tuple[list[int], list[int], list[int], list[int]]


def met_places(
    calls: Sequence[tuple[str, int, Sequence[int]]],
    phase: str,
    rows_of: Mapping[int, int],
    wanted: set[int],
) -> dict[int, tuple[int, int]]:
    """Row -> (call of this phase, place in its batch) where the model meets it first."""
    places: dict[int, tuple[int, int]] = {}
    for number, hashes in ((number, hashes) for kind, number, hashes in calls if kind == phase):
        for place, h in enumerate(hashes):
            row = rows_of.get(h, -1)
            if row in wanted:
                places.setdefault(row, (number, place))
    return places


def same_label_rows(
    labels: Numbers, trained: Sequence[int], evaluated: Sequence[int]
) -> Groups | None:
    """Two training rows and two evaluated ones, with one label (of a quantity: the nearest), some
    times over; None where there are too few.
    """
    is_class = len(np.unique(labels)) <= MOST_CLASSES
    used: set[int] = set()
    groups: list[list[int]] = []
    for row in _spread(evaluated):
        free = ([i for i in rows if i not in used] for rows in (trained, [row, *evaluated]))
        group = [i for rows in free for i in _nearest(labels, rows, row)]
        is_far = is_class and any(labels[i] != labels[row] for i in group)
        if row in used or len(group) < 4 or is_far:
            continue
        used.update(group)
        groups.append(group)
    if len(groups) < LEAST_GROUPS:
        return None
    first, second, held, again = ([group[k] for group in groups] for k in range(4))
    return first, second, held, again


def _nearest(labels: Numbers, rows: Sequence[int], row: int) -> list[int]:
    """Two rows with the labels nearest to that of this one, the first of those that are equal."""
    rows = list(dict.fromkeys(rows))
    near = np.argsort(np.abs(labels[rows] - labels[row]), kind="stable")
    return [rows[k] for k in near[:2].tolist()]


def _spread(rows: Sequence[int]) -> list[int]:
    """A few of them, from beginning to end."""
    chosen = np.linspace(0, len(rows) - 1, min(GROUPS, len(rows))).astype(int)
    return [rows[k] for k in dict.fromkeys(chosen.tolist())]

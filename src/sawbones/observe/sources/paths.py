"""Rows for the question whether training and evaluation prepare a row alike: which of them could be
made copies of one another without moving a label, and where the model meets them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sawbones.observe.sources.containers import Numbers

TRIPLES = 8
LEAST_TRIPLES = 4
MOST_CLASSES = 20  # labels with more values are a quantity

Triples = tuple[list[int], list[int], list[int]]


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
) -> Triples | None:
    """Two training rows and an evaluated one, with one label (of a quantity: the nearest), some
    times over; None where there are too few.
    """
    is_class = len(np.unique(labels)) <= MOST_CLASSES
    free = sorted(trained, key=lambda i: (labels[i], i))
    values = np.array([labels[i] for i in free])
    used: set[int] = set()
    first, second, held = [], [], []
    for row in _spread(evaluated):
        near = np.argsort(np.abs(values - labels[row]), kind="stable")
        pair = [free[k] for k in near[: 4 * TRIPLES].tolist() if free[k] not in used][:2]
        if len(pair) < 2 or (is_class and any(labels[i] != labels[row] for i in pair)):
            continue
        used.update(pair)
        first.append(pair[0])
        second.append(pair[1])
        held.append(row)
    return (first, second, held) if len(held) >= LEAST_TRIPLES else None


def _spread(rows: Sequence[int]) -> list[int]:
    """A few of them, from beginning to end."""
    chosen = np.linspace(0, len(rows) - 1, min(TRIPLES, len(rows))).astype(int)
    return [rows[k] for k in dict.fromkeys(chosen.tolist())]

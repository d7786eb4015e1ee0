"""Quantities that a model answers in another unit than the script compares them in.

Targets are often divided by their spread, or centred, before training, and the answers put back by
NumPy afterwards. Their distance to the targets of the script then says nothing. One straight line
leads from the answers of a model to its targets, the same for all evaluations of it; it is read off
the evaluation whose rows are most like those that were trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sawbones.observe.populations.judged import Judged
from sawbones.observe.populations.log import Values

FOLLOWS = 0.9  # correlation of answers and targets: a model that answers in any unit
NEARER = 3.0  # times as near as without the line: a biased model gains less

Line = tuple[float, float]  # slope and offset, from answers to targets


def in_one_unit(found: Sequence[Judged], trained: Values) -> list[Judged]:
    """The same evaluations, with distances in the unit of the targets. `trained`: some rows that
    were trained on, of their width.
    """
    lines: dict[tuple[int, int], Line | None] = {}
    for one in sorted(found, key=lambda one: _unlike(one.rows, trained)):
        if one.module not in lines and one.kind == "quantity":
            lines[one.module] = _line(one)
    return [_moved(one, lines.get(one.module)) for one in found]


def _unlike(rows: Values, trained: Values) -> float:
    """By how many spreads the columns lie off those that were trained on."""
    if rows.shape[1:] != trained.shape[1:] or not len(trained):
        return 0.0
    spread = trained.std(0)
    off = np.abs(rows.mean(0) - trained.mean(0))[spread > 0] / spread[spread > 0]
    return float(np.nan_to_num(off).max(initial=0.0))


def _line(one: Judged) -> Line | None:
    """None where answers and targets are of one unit, or have little to do with each other."""
    if one.wanted is None or one.errors is None:
        return None
    given, wanted = one.answers[:, 0].astype(np.float64), one.wanted.astype(np.float64)
    if not np.all(np.isfinite(given)) or given.std() == 0 or wanted.std() == 0:
        return None
    fit = float(np.corrcoef(given, wanted)[0, 1])
    slope = fit * float(wanted.std() / given.std())
    offset = float(wanted.mean() - slope * given.mean())
    apart = float(np.abs(slope * given + offset - wanted).mean())
    is_nearer = NEARER * apart < float(one.errors.mean())
    return (slope, offset) if fit >= FOLLOWS and is_nearer else None


def _moved(one: Judged, line: Line | None) -> Judged:
    if line is None or one.kind != "quantity" or one.wanted is None:
        return one
    slope, offset = line
    errors = np.abs(slope * one.answers[:, 0].astype(np.float64) + offset - one.wanted)
    new = errors if one.is_new is None else errors[one.is_new]
    return replace(one, errors=errors, new_score=float(new.mean()) if new.size else None)

"""Evaluated rows that the same model was trained on, among others that it was not.

Rows are compared as the model is given them, so it does not matter whether a loader, an array or a
slice of one fed the training and the evaluation. Equal rows are copies where they have several
measurements, which do not come about twice; of wide rows without any (pictures in whole numbers),
where the evaluated ones are equal to each other far less often. Where rows come about twice by
chance, there are many more that differ in a place or two: rows that are equal to a trained one, and
far from every other, are copies from a smaller share on.
"""

from __future__ import annotations

import numpy as np

from sawbones.observe.populations.between import real_columns
from sawbones.observe.populations.columns import is_id
from sawbones.observe.populations.judged import Judged
from sawbones.observe.populations.log import PassLog, Values
from sawbones.schema.populations import CopiedRows

LEAST_MEASURED = 3  # columns that nearly each row has a value of its own in
WIDE = 64  # values of a row: of fewer, on a grid, there are too few different ones
LEAST_CALL = 16  # rows of a call, so that a share of them says something
MIXED = 0.02  # of a call, of the rarer of known and new rows: else it is of one kind
LEAST_TRAINED = 100  # different rows, so that they show how near the next one is
LOOKED_AT = 100  # copies
NEAR = 1 / 3  # of the places in which a usual row differs
KEPT = 0.5  # of the trained rows: of fewer the nearest ones may be missing
UNSEEN_PAIRS = 3.0  # equal ones that may be missing by chance (rule of three)


def copied_rows(log: PassLog, one: Judged) -> CopiedRows | None:
    """None where nothing can be said about equal rows."""
    here = log.latest()[one.number]
    if here.shape is None or here.bags:
        return None  # other inputs may tell equal rows apart; texts are compared elsewhere
    if here.takes_statistics:
        return None  # of the training rows, most likely, for weights that were averaged
    if here.loader and here.loader in log.training_loaders:
        return None  # a score on the training rows, of which some were changed for training
    trained = log.trained_for(here.module)
    ends = np.cumsum(here.sizes).tolist()
    calls = [here.hashes[end - size : end] for size, end in zip(here.sizes, ends, strict=True)]
    large = [call for call in calls if len(call) >= LEAST_CALL]
    mixed = [call for call in large if _is_mixed(call, trained)]
    rows = {h for call in mixed or large for h in call}
    copies = rows & trained if mixed else set()
    is_telling, chance = _by_chance(one.rows, here.hashes, len(trained))
    if is_telling:
        drawings = {h for h, drawn in zip(one.hashes, _drawn(one.rows), strict=True) if drawn}
        rows, copies = rows - drawings, copies - drawings
    if not rows or not trained or (not is_telling and one.rows.shape[1] < WIDE):
        return None
    again = np.isin(np.array(here.hashes, np.int64), np.array(sorted(copies), np.int64))
    return CopiedRows(
        one.number,
        models=log.num_trained_models,
        rows=len(rows),
        copies=len(copies),
        mixed=sum(map(len, mixed)) / sum(map(len, large)),
        met=len(copies) / len(trained),
        is_telling=is_telling,
        chance=chance,
        near=_near_others(one.rows[again], log.trained_rows(one.rows.shape[1]), len(trained)),
    )


def _drawn(rows: Values) -> list[bool]:
    """Of two different values at most: a few numbers say where they change, so that such rows come
    about twice.
    """
    low, high = rows.min(1, keepdims=True), rows.max(1, keepdims=True)
    drawn: list[bool] = ((rows == low) | (rows == high)).all(1).tolist()
    return drawn


def _is_mixed(call: list[int], trained: set[int]) -> bool:
    share = sum(h in trained for h in call) / len(call)
    return min(share, 1 - share) > MIXED


def _near_others(copies: Values, trained: Values, num_trained: int) -> float | None:
    """The share of the copies that also have a trained row near by which they are not equal to;
    None where too few rows are there to say so.
    """
    known = np.unique(trained, axis=0)
    if len(known) < LEAST_TRAINED or len(known) < KEPT * num_trained or not len(copies):
        return None
    looked_at = np.unique(copies, axis=0)[:LOOKED_AT]
    near = 0
    for row in looked_at:
        places = np.count_nonzero(known != row, axis=1)
        others = places[places > 0]
        near += int(others.min() <= NEAR * np.median(others))
    return near / len(looked_at)


def _by_chance(rows: Values, hashes: list[int], num_trained: int) -> tuple[bool, float]:
    """(whether equal rows are copies for certain, the share that equals a trained row by chance: at
    most as often, pair by pair, as evaluated rows equal each other).
    """
    known = np.unique(rows, axis=0)
    measured = known[:, real_columns(known)]
    on_grid = any(is_id(column.astype(np.float64)) for column in measured.T)
    counts = np.unique(hashes, return_counts=True)[1].astype(np.float64)
    equal = float((counts * (counts - 1)).sum()) / 2
    pairs = max(len(hashes) * (len(hashes) - 1) / 2, 1.0)
    chance = min(1.0, (equal + UNSEEN_PAIRS) / pairs * num_trained)
    return measured.shape[1] >= LEAST_MEASURED and not on_grid, chance

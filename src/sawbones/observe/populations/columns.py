"""The one input column that carries the answer: what a model still knows with it scrambled, and
with everything else scrambled.

Nothing in numbers alone sets a column that was written after the event apart from one that is a
strong cause. Three things point at it: a value that all rows of one class have and none of the other
(the field is filled in when the event takes place), a number that each row has of its own, which
can be no cause, and a column that all but decides the class
although hardly a row lies between the two, with nothing much in all other columns together.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from sawbones.observe.populations.judged import Judged
from sawbones.observe.populations.log import PassLog, Values, cut
from sawbones.schema.populations import CarryingColumn

MAX_WIDTH = 200
MAX_ROWS = 2000
LEAST_OF_A_CLASS = 20
OWED = 0.8  # of what the score is above the best constant answer, lost without the column
LEFT = 0.9  # of the same, kept with this column alone
MIN_IDS, MOST_EMPTY = 40, 50  # rows, and places of the grid for each of them
LEAST_AMOUNTS = 200  # rows: the tenth of them is a share that is known to a tenth
FAR_ABOVE = 0.15  # that the score is above the best constant answer

Flags = npt.NDArray[np.bool_]


def strongest_column(log: PassLog, found: list[Judged]) -> CarryingColumn | None:
    """None where no single column carries the answer, or where it could not be tried."""
    held = [
        one
        for one in found
        if one.kind == "classes" and one.likeness is None and one.errors is not None
    ]
    new = [one for one in held if one.known < 1 - OWED]
    if not new:
        return None
    one = max(new, key=lambda p: len(p.hashes))
    trained = log.module_of(one.number)
    shape = log.latest()[one.number].shape
    if trained is None or shape is None or len(shape) != 1 or not 2 <= shape[0] <= MAX_WIDTH:
        return None
    module = copy.deepcopy(trained).train(one.is_training)
    rows, wanted = one.rows[:MAX_ROWS], (one.wanted if one.wanted is not None else one.rows[:, 0])
    wanted = wanted[:MAX_ROWS]
    score = share_right(module, rows, wanted)
    if score is None or abs(score - float(1 - _errors(one)[:MAX_ROWS].mean())) > 1e-6:
        return None  # the model is not what it was, or wants more than these rows
    constant = max(float(np.mean(wanted == c)) for c in np.unique(wanted))
    if score - constant < FAR_ABOVE:
        return None
    order = np.random.default_rng(0).permutation(len(rows))
    drops = []
    for column in range(rows.shape[1]):
        other = rows.copy()
        other[:, column] = rows[order, column]
        drops.append((share_right(module, other, wanted) or 0.0, column))
    without, column = min(drops)
    alone = rows[order].copy()
    alone[:, column] = rows[:, column]
    kept = share_right(module, alone, wanted) or 0.0
    gain = score - constant
    if score - without < OWED * gain or kept - constant < LEFT * gain:
        return None
    values = rows[:, column].astype(np.float64)
    told = CarryingColumn(
        one.number,
        column,
        rows.shape[1],
        len(rows),
        score,
        without,
        kept,
        constant,
        is_id(values),
    )
    return _with_shape(told, values, wanted)


def _errors(one: Judged) -> npt.NDArray[np.float64]:
    return one.errors if one.errors is not None else np.zeros(len(one.hashes))


def share_right(module: nn.Module, rows: Values, wanted: Values) -> float | None:
    """Of the answers for these rows; None where they are not one for each."""
    with torch.no_grad():
        given = torch.from_numpy(rows).to(next(module.parameters()).dtype)
        result = module(given)
    if not isinstance(result, torch.Tensor) or len(result) != len(rows):
        return None
    scores = result.detach().float().reshape(len(rows), -1).numpy()
    one = scores[:, 0]
    chosen = scores.argmax(1) if scores.shape[1] > 1 else (one > cut(one))
    return float(np.mean(chosen == wanted))


def _with_shape(
    told: CarryingColumn, values: npt.NDArray[np.float64], wanted: Values
) -> CarryingColumn:
    """Whether one value stands for a class, and how empty it is between two classes."""
    classes, counts = np.unique(wanted, return_counts=True)
    if len(classes) != 2 or counts.min() < LEAST_OF_A_CLASS:
        return told
    first = wanted == classes[0]
    filled, at_once = _filled(values, first)
    return replace(
        told,
        filled=filled,
        at_once=at_once,
        between=_between(values, first),
        exceptions=_exceptions(values, first),
    )


def is_id(values: npt.NDArray[np.float64]) -> bool:
    """A number of its own for each row, all of them on one even grid, as ids and row numbers are,
    scaled or not. A measurement that is rounded to a grid has values more than once.
    """
    ordered = np.sort(values)
    gaps = np.diff(ordered)
    if len(values) < MIN_IDS or gaps.min() <= 0:
        return False
    rounding = 4 * float(np.finfo(np.float32).eps) * float(np.abs(values).max())
    steps = gaps / gaps.min()
    off = np.abs(steps - np.round(steps))
    fine = float(ordered[-1] - ordered[0]) / float(gaps.min())
    return bool(fine <= MOST_EMPTY * len(values) and np.all(off * gaps.min() <= rounding * steps))


def _filled(values: npt.NDArray[np.float64], first: Flags) -> tuple[float, float]:
    """(how surely one value says the class, where the other class has many others; how much of the
    other class's share is there at once, in the tenth of all other values that lies nearest to it).
    """
    best = 0.0, 0.0
    for mine in (first, ~first):
        kinds, counts = np.unique(values[mine], return_counts=True)
        common = kinds[counts.argmax()]
        if len(np.unique(values[~mine])) >= 5:
            sure = min(
                float(np.mean(values[mine] == common)), float(np.mean(values[~mine] != common))
            )
            best = max(best, (sure, _at_once(np.abs(values - common), ~mine)))
    return best


def _at_once(away: npt.NDArray[np.float64], other: Flags) -> float:
    """1 where the smallest amount says as much as the largest; a cause says more the larger it is."""
    amounts = away[away > 0]
    if len(amounts) < LEAST_AMOUNTS or not np.any(away == 0):
        return 0.0
    none, least, all_others = (
        float(np.mean(other[rows]))
        for rows in (away == 0, (away > 0) & (away <= np.quantile(amounts, 0.1)), away > 0)
    )
    return (least - none) / (all_others - none) if all_others > none else 0.0


def _exceptions(values: npt.NDArray[np.float64], first: Flags) -> int:
    """Rows on the wrong side of the best single cut."""
    order = np.argsort(values, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(values[order])), len(values) - 1)
    below = np.cumsum(first[order])[ends]
    wrong = np.concatenate([[first.sum()], ends + 1 - below + first.sum() - below])
    return int(min(wrong.min(), (len(values) - wrong).min()))


def _between(values: npt.NDArray[np.float64], first: Flags) -> float:
    """Rows in the middle third between the medians of the classes, over those of an even spread."""
    low, high = sorted((float(np.median(values[first])), float(np.median(values[~first]))))
    third = (high - low) / 3
    bottom, top = np.quantile(values, [0.1, 0.9])
    if third <= 0 or top <= bottom:
        return 1.0
    middle = float(np.mean((values >= low + third) & (values <= high - third)))
    return (middle / third) / (0.8 / float(top - bottom))

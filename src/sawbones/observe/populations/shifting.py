"""One population on which a model is far worse than on another: by how much, and what moved.

Nothing is said of rows that were trained on: that the model knows them better is no shift. Every
comparison counts for the correction, whether anything came of it or not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from sawbones.observe.populations.held import LEAST_ROWS
from sawbones.observe.populations.judged import Errors, Judged
from sawbones.schema.populations import (
    MovedColumn,
    MovedTargets,
    PrecisionFall,
    RowKind,
    WorsePair,
)
from sawbones.stats.distributions import wilson

ERROR_RATE = 0.01  # of all comparisons together, where nothing differs
MOST_TRAINED = 0.2  # of the rows of a population: more, and it is a look at the training set
PART = 0.9  # of the rows of one population that another one holds too: a part of it
MAX_COLUMNS = 512
MAX_NEIGHBOURS = 500  # rows of each population, in which the nearest ones are looked for
FEW_KINDS = 20
LEAST_KNOWN = 0.01  # of the rows trained on: a kind that training has some of
LEAST_OF_A_KIND = 25  # evaluated rows
SHOWN = 3

Rows = npt.NDArray[np.float32]
Column = npt.NDArray[np.float64]


def worse_pairs(found: Sequence[Judged], trained: Rows) -> list[WorsePair]:
    """Populations against others of the same model, where they are worse at all, and kinds of row
    within one population against the rest of it. `trained`: some rows that were trained on.
    """
    held = [one for one in found if one.errors is not None and one.known <= MOST_TRAINED]
    pairs = [(a, b) for a, b in permutations(held, 2) if _are_siblings(a, b)]
    tried = max(1, len(pairs) // 2)
    told = list(_worse_kinds(max(held, key=lambda one: len(one.hashes)))) if held else []
    for reference, later in pairs:
        rest = _without(reference, later)
        if rest is None:
            continue
        lower, ratio = _worse(rest, later, ERROR_RATE / tried)
        precision = _precision(rest, later, ERROR_RATE / tried)
        if lower <= 0 and precision is None:
            continue
        columns = _moved_columns(rest.rows, later.rows, ERROR_RATE / tried)
        labels = _labels(rest, later, ERROR_RATE / tried)
        told.append(
            WorsePair(
                reference.number,
                later.number,
                rest is not reference,
                later.kind,
                (len(rest.hashes), len(later.hashes)),
                (rest.score, later.score),
                lower,
                ratio,
                tried,
                rest.rows.shape[1],
                precision,
                _kinds(rest, later, trained),
                tuple(columns),
                len(columns),
                labels,
                _within_classes(rest, later, ERROR_RATE / tried) if labels and columns else 0.0,
                together=moved_together(rest.rows, later.rows, ERROR_RATE / tried),
            )
        )
    told.sort(
        key=lambda pair: (
            -max(pair.lower, 0.0),
            -(pair.precision.lower if pair.precision else 0.0),
            pair.reference,
            pair.later,
        )
    )
    return told[:6]


def _are_siblings(a: Judged, b: Judged) -> bool:
    alike = a.module == b.module
    if a.module[0] != b.module[0]:
        alike = _has_trained_weights(a) and _has_trained_weights(b)
    return alike and a.kind == b.kind and a.rows.shape[1] == b.rows.shape[1]


def _has_trained_weights(one: Judged) -> bool:
    """The trained model, or a copy of it that was not changed, buffers included."""
    like = one.likeness
    return like is None or (like.shared == 1 and like.distance == 0 and not like.buffers)


def _without(reference: Judged, later: Judged) -> Judged | None:
    """The reference, less the rows that are the later population's own; None where both are one."""
    mine = set(later.hashes)
    both = sum(h in mine for h in reference.hashes)
    if not both:
        return reference
    if reference.wanted is not None and later.wanted is not None:
        theirs = set(reference.hashes)
        if sum(h in theirs for h in later.hashes) < PART * len(later.hashes):
            return None
    return _part(reference, np.array([h not in mine for h in reference.hashes]))


def _part(one: Judged, keep: npt.NDArray[np.bool_], least: int = LEAST_ROWS) -> Judged | None:
    if keep.sum() < least or one.errors is None or one.wanted is None:
        return None
    return replace(
        one,
        rows=one.rows[keep],
        hashes=tuple(h for h, kept in zip(one.hashes, keep.tolist(), strict=True) if kept),
        answers=one.answers[keep],
        wanted=one.wanted[keep],
        errors=one.errors[keep],
        is_new=None,
    )


def _worse_kinds(whole: Judged) -> Iterator[WorsePair]:
    """Every value of every column that has few of them, against all other rows."""
    parts: list[tuple[RowKind, npt.NDArray[np.bool_]]] = [
        (RowKind(column, float(value)), whole.rows[:, column] == value)
        for column in range(min(whole.rows.shape[1], MAX_COLUMNS))
        if 2 <= len(values := np.unique(whole.rows[:, column])) <= FEW_KINDS
        for value in values
    ]
    parts += [
        (RowKind(held.name, name), held.codes == code)
        for held in whole.held
        if not _names_the_class(held.codes, whole.wanted)
        for code, name in enumerate(held.kinds)
    ]
    for kind, picked in parts:
        here, rest = _part(whole, picked, LEAST_OF_A_KIND), _part(whole, ~picked)
        if here is None or rest is None:
            continue
        lower, ratio = _worse(rest, here, ERROR_RATE / len(parts))
        if lower > 0:
            yield WorsePair(
                whole.number,
                whole.number,
                True,
                whole.kind,
                (len(rest.hashes), len(here.hashes)),
                (rest.score, here.score),
                lower,
                ratio,
                len(parts),
                whole.rows.shape[1],
                kinds=(kind,),
            )


def _names_the_class(codes: npt.NDArray[np.int64], wanted: Rows | None) -> bool:
    """Whether all rows of a kind are of one class: the target in other words."""
    if wanted is None:
        return True
    pairs = np.unique(np.stack([codes.astype(np.float64), wanted.astype(np.float64)]), axis=1)
    return bool(pairs.shape[1] == len(np.unique(codes)))


def _kinds(reference: Judged, later: Judged, trained: Rows) -> tuple[RowKind, ...]:
    """Columns of few kinds in which the later rows are all of one that the reference hardly has,
    and training has some of: a part of what the model knows, not something new.
    """
    found = []
    for column in range(min(later.rows.shape[1], MAX_COLUMNS)):
        value = later.rows[0, column]
        if not np.all(later.rows[:, column] == value):
            continue
        known = trained[:, column] if trained.shape[1:] == later.rows.shape[1:] else trained[:, 0:0]
        if (
            known.size
            and 2 <= len(np.unique(known)) <= FEW_KINDS
            and np.mean(reference.rows[:, column] == value) < 1 - PART
            and np.mean(known == value) >= LEAST_KNOWN
        ):
            found.append(RowKind(column, float(value)))
    return tuple(found[:SHOWN])


def _worse(reference: Judged, later: Judged, rate: float) -> tuple[float, float]:
    """(least difference of the error rates, or of the logarithms of the mean distances; the ratio
    of the errors), at this rate of false alarms.
    """
    if reference.errors is None or later.errors is None:
        return 0.0, 1.0
    ours, theirs = float(reference.errors.mean()), float(later.errors.mean())
    z = NormalDist().inv_cdf(1 - rate / 2)
    if reference.kind == "classes":
        high = wilson(reference.errors.sum(), len(reference.errors), z)[1]
        low = wilson(later.errors.sum(), len(later.errors), z)[0]
        apart = theirs - ours
        lower = apart - math.hypot(theirs - low, high - ours)
        return lower, theirs / max(ours, 1 / len(reference.errors))
    if ours <= 0 or theirs <= 0:
        return 0.0, 1.0
    off = math.hypot(_relative_error(reference.errors), _relative_error(later.errors))
    return math.log(theirs / ours) - z * off, theirs / ours


def _precision(reference: Judged, later: Judged, rate: float) -> PrecisionFall | None:
    """The class whose answers are right far less often, at the least; None where there is none."""
    if reference.kind != "classes" or reference.errors is None or later.errors is None:
        return None
    classes = np.intersect1d(reference.given, later.given)
    # each pair comes in both orders here, with all classes
    z = NormalDist().inv_cdf(1 - rate / (4 * max(len(classes), 1)))
    found = []
    for c in classes:
        ours, theirs = reference.errors[reference.given == c], later.errors[later.given == c]
        if len(ours) < LEAST_OF_A_KIND or len(theirs) < LEAST_OF_A_KIND:
            continue
        before, after = float(1 - ours.mean()), float(1 - theirs.mean())
        low = wilson(len(ours) - ours.sum(), len(ours), z)[0]
        high = wilson(len(theirs) - theirs.sum(), len(theirs), z)[1]
        lower = before - after - math.hypot(before - low, high - after)
        found.append(PrecisionFall(float(c), before, after, lower))
    worst = max(found, key=lambda f: f.lower, default=None)
    return worst if worst is not None and worst.lower > 0 else None


def _relative_error(errors: Errors) -> float:
    return float(errors.std() / max(errors.mean(), 1e-12) / math.sqrt(len(errors)))


# what moved


def _moved_columns(
    ours: npt.NDArray[Any], theirs: npt.NDArray[Any], rate: float
) -> list[MovedColumn]:
    """Columns whose values are distributed otherwise, the furthest first."""
    width = min(ours.shape[1], MAX_COLUMNS)
    critical = _critical(len(ours), len(theirs), rate / max(width, 1))
    found = []
    for i in range(width):
        a, b = ours[:, i].astype(np.float64), theirs[:, i].astype(np.float64)
        a, b = a[np.isfinite(a)], b[np.isfinite(b)]
        if len(a) < LEAST_ROWS or len(b) < LEAST_ROWS // 2:
            continue
        apart = ks_distance(a, b)
        if apart > critical:
            spread = float(a.std())
            scale = spread or float(np.abs(a).max()) or 1.0
            shift = float((b.mean() - a.mean()) / scale)
            found.append(MovedColumn(i, apart, shift, float(b.std() / scale) if spread else 1.0))
    return sorted(found, key=lambda c: (-_size(c), c.column))


def moved_together(ours: Rows, theirs: Rows, rate: float) -> float:
    """By how much more rows have their nearest neighbour in their own population than where both
    are one, at the least: columns may lie together in another way, each by itself as before.
    """
    size = min(len(ours), len(theirs), MAX_NEIGHBOURS)
    a, b = (rows[:: len(rows) // size][:size, :MAX_COLUMNS] for rows in (ours, theirs))
    both = np.concatenate([a, b]).astype(np.float64)
    both = np.nan_to_num(both, posinf=0, neginf=0)
    both = (both - both.mean(0)) / np.maximum(both.std(0), 1e-12)
    squares = (both**2).sum(1)
    apart = squares[:, None] + squares[None] - 2 * both @ both.T
    np.fill_diagonal(apart, np.inf)
    own = (apart.argmin(1) < size) == (np.arange(2 * size) < size)
    # pairs of rows are each other's neighbours: half as many count as independent
    low = wilson(own.sum() / 2, size, NormalDist().inv_cdf(1 - rate / 2))[0]
    return max(0.0, 2 * low - 1)


def _size(column: MovedColumn) -> float:
    spread = abs(math.log(column.spread)) if column.spread else math.inf
    return max(spread, abs(column.shift), column.apart)


def ks_distance(a: Column, b: Column) -> float:
    both = np.sort(np.concatenate([a, b]))
    ours = np.searchsorted(np.sort(a), both, side="right") / len(a)
    theirs = np.searchsorted(np.sort(b), both, side="right") / len(b)
    return float(np.abs(ours - theirs).max())


def _critical(n: int, m: int, rate: float) -> float:
    """The distance of two samples of one distribution that is passed at this rate (Smirnov)."""
    return math.sqrt(-math.log(max(rate, 1e-300) / 2) / 2) * math.sqrt((n + m) / (n * m))


def _labels(reference: Judged, later: Judged, rate: float) -> MovedTargets | None:
    """How the targets moved, beyond chance; None where they did not."""
    ours, theirs = reference.wanted, later.wanted
    if ours is None or theirs is None:
        return None
    if reference.kind == "classes":
        classes = np.union1d(ours, theirs)
        shares = [
            (float(c), float(np.mean(ours == c)), float(np.mean(theirs == c))) for c in classes
        ]
        name, before, after = max(shares, key=lambda s: abs(s[2] - s[1]))
        z = NormalDist().inv_cdf(1 - rate / (2 * len(shares)))
        pooled = (before * len(ours) + after * len(theirs)) / (len(ours) + len(theirs))
        off = math.sqrt(pooled * (1 - pooled) * (1 / len(ours) + 1 / len(theirs)))
        if abs(after - before) <= z * off:
            return None
        return MovedTargets(before, after, abs(after - before), name)
    apart = ks_distance(ours.astype(np.float64), theirs.astype(np.float64))
    if apart <= _critical(len(ours), len(theirs), rate):
        return None
    return MovedTargets(float(ours.mean()), float(theirs.mean()), apart)


def _within_classes(reference: Judged, later: Judged, rate: float) -> float:
    """The furthest that a column moved among rows of one class; 0 where none did beyond chance."""
    if reference.kind != "classes" or reference.wanted is None or later.wanted is None:
        return 1.0
    furthest = 0.0
    for c in np.intersect1d(reference.wanted, later.wanted):
        ours, theirs = reference.rows[reference.wanted == c], later.rows[later.wanted == c]
        if len(ours) >= LEAST_ROWS and len(theirs) >= LEAST_ROWS // 2:
            moved = _moved_columns(ours, theirs, rate)
            furthest = max([furthest, *(m.apart for m in moved)])
    return furthest

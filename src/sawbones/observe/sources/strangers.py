"""Evaluated rows that have relatives among those trained on (of one patient, document, machine), or
that are older than some of them: which training rows would have to go to make them strangers.

A column counts where its values repeat (not as a phase that comes round), the model is not given
it, and the nearest trained row of an evaluated one is of the same group far more often than chance
would have it; or where it holds moments, and rows before and after are on both sides; or where the
rows themselves follow each other like moments of a process. What the score owes to it is measured
by a trial: the rows named here are overwritten with others of the same label.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sawbones.schema.sources import StrangerRows

LEAST_GROUPS, ROWS_OF_ONE = 8, 2.0
SHARED = 0.5  # of the evaluated rows whose group is trained on
LEAST_STRANGERS = 20  # evaluated rows
MOST_OVERWRITTEN = 0.35  # of the training rows
NEIGHBOURS_OF_GROUP = 0.25  # of evaluated rows whose nearest trained one is of their group
ABOVE_CHANCE = 3.0
SAME_COLUMN = 0.999
LAST_PART = 0.3  # of the evaluated rows in time
ROW_ORDER = "the order of the rows"
MAX_COMPARED = 400
MAX_TRAINED = 4000

Values = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]
Numbers = tuple[int, ...]


@dataclass(frozen=True)
class Column:
    name: str
    values: Values
    is_date: bool
    is_named: bool = False  # by a table, not after what holds it


def find_strangers(
    columns: Sequence[Column],
    inputs: Values,
    labels: Values | None,
    trained: Sequence[int],
    evaluated: Sequence[int],
    is_series: bool = False,
    in_order: bool = False,
) -> list[StrangerRows]:
    """At most one column of groups and one of moments, each with the rows to overwrite.
    `is_series`: the rows follow each other like moments of a process; `in_order`: so they do, and
    its moments were dealt out to both sides.
    """
    train, held = np.array(trained, np.int64), np.array(evaluated, np.int64)
    train = train[train < len(inputs)]
    given = [inputs[:, i] for i in range(min(inputs.shape[1], 256))]
    found: list[StrangerRows] = []
    groups = [
        g
        for g in _by_group(columns, given, inputs, train, held)
        if not (is_series and comes_round(g[2]))
    ]
    if groups:
        _, name, codes = max(groups, key=lambda g: g[0])
        plan = _without_groups(name, codes, labels, train, held)
        found += [plan] if plan else []
    dated = next((c for c in columns if c.is_date), None)
    if dated is None and in_order and not found:
        dated = Column(ROW_ORDER, np.arange(len(inputs), dtype=np.float32), True)
    if dated is not None:
        plan = _without_future(dated.name, dated.values, labels, train, held)
        found += [plan] if plan else []
    return found


def _by_group(
    columns: Sequence[Column], given: Sequence[Values], inputs: Values, train: Places, held: Places
) -> Iterator[tuple[tuple[float, bool], str, Places]]:
    near = _nearest(inputs, train, held)
    if near is None:
        return
    picked, nearest = near
    for column in columns:
        if column.is_date or not np.all(np.isfinite(column.values)):
            continue
        codes = np.unique(column.values, return_inverse=True)[1].astype(np.int64)
        groups = int(codes.max()) + 1
        if groups < LEAST_GROUPS or len(codes) < ROWS_OF_ONE * groups:
            continue
        if np.mean(np.isin(codes[held], codes[train])) < SHARED:
            continue
        if is_given(column.values, given) or is_told(codes, inputs):
            continue
        same = float(np.mean(codes[picked] == codes[nearest]))
        shares = np.bincount(codes[train], minlength=groups) / len(train)
        chance = float(np.mean(shares[codes[picked]]))
        if same >= NEIGHBOURS_OF_GROUP and same >= ABOVE_CHANCE * chance:
            yield (same, column.is_named), column.name, codes


def is_given(values: Values, given: Sequence[Values]) -> bool:
    """Whether the model gets this column, scaled or not."""
    for other in given:
        known = np.isfinite(other)
        a, b = values[known].astype(np.float64), other[known].astype(np.float64)
        varies = len(a) > 2 and a.std() > 0 and b.std() > 0
        if varies and abs(float(np.corrcoef(a, b)[0, 1])) >= SAME_COLUMN:
            return True
    return False


def is_told(codes: Places, inputs: Values) -> bool:
    """Whether the model gets the groups one by one: a column for each that is on in its rows
    alone. Then they are a feature, and new ones cannot come.
    """
    met = np.isfinite(inputs).all(1)
    on = inputs[met] != inputs[met][:1]
    told = 0
    for group in range(int(codes.max()) + 1):
        rows = codes[met] == group
        same = (on == rows[:, None]).all(0) | (on != rows[:, None]).all(0)
        told += bool(same.any())
    return told >= SAME_COLUMN * int(codes.max())  # one may be left out: it follows from the others


def comes_round(codes: Places) -> bool:
    """Whether the rows run through the groups again and again in one order, as through the hours
    of a day: a phase of a process, that every later row has too.
    """
    first = codes[:MAX_TRAINED]
    starts = np.flatnonzero((first[1:] == first[0]) & (first[:-1] != first[0])) + 1
    if len(starts) < 2:
        return False
    period = int(starts[0])
    return bool(np.mean(first[period:] == first[:-period]) >= SAME_COLUMN)


def _nearest(inputs: Values, train: Places, held: Places) -> tuple[Places, Places] | None:
    """(some evaluated rows, the nearest trained row of each), columns in units of their spread."""
    picked = held[np.isfinite(inputs[held]).all(1)][:MAX_COMPARED]
    known = train[np.isfinite(inputs[train]).all(1)][:MAX_TRAINED]
    if len(picked) < LEAST_STRANGERS or len(known) < LEAST_STRANGERS:
        return None
    spread = inputs[known].std(0)
    used = spread > 0
    x = (inputs[known][:, used] / spread[used]).astype(np.float64)
    y = (inputs[picked][:, used] / spread[used]).astype(np.float64)
    squares = (y**2).sum(1)[:, None] + (x**2).sum(1)[None, :] - 2.0 * y @ x.T
    return picked, known[squares.argmin(1)]


def _without_groups(
    name: str, codes: Places, labels: Values | None, train: Places, held: Places
) -> StrangerRows | None:
    """Some groups that are evaluated, and their training rows, to be overwritten with others."""
    rows_of = np.bincount(codes[train], minlength=int(codes.max()) + 1)
    met = [g for g in np.unique(codes[held]).tolist() if rows_of[g]]
    # neither the first nor the largest, whatever their numbers mean: every third, then the rest
    order = [g for start in range(3) for g in met[start::3]]
    chosen: list[int] = []
    total = 0
    for g in order:
        if total + rows_of[g] <= MOST_OVERWRITTEN * len(train):
            chosen.append(g)
            total += int(rows_of[g])
    out = np.isin(codes[train], chosen)
    strangers = held[np.isin(codes[held], chosen)]
    if len(chosen) < LEAST_GROUPS // 2 or len(strangers) < LEAST_STRANGERS:
        return None
    of_each = tuple(strangers.tolist()), tuple(codes[strangers].tolist())
    copies = _copies(labels, train[out], train[~out])
    one = labels is not None and _has_one_answer(codes, labels, np.concatenate([train, held]))
    return replace(StrangerRows(name, "group", len(met), *of_each, *copies), one_answer=one)


def _has_one_answer(codes: Places, labels: Values, rows: Places) -> bool:
    """Whether to know the group is to know the answer, and several groups have each."""
    pairs = np.unique(np.stack([codes[rows], labels[rows]]), axis=1)
    _, groups_of = np.unique(pairs[1], return_counts=True)
    same = pairs.shape[1] == len(np.unique(codes[rows]))
    return bool(same and len(groups_of) > 1 and groups_of.min() >= LEAST_GROUPS // 2)


def _without_future(
    name: str, days: Values, labels: Values | None, train: Places, held: Places
) -> StrangerRows | None:
    """The last evaluated rows, and all training rows from their time on."""
    start = float(np.quantile(days[held], 1 - LAST_PART))
    out = days[train] >= start
    strangers = held[days[held] > start]
    if not 0 < out.mean() <= 2 * LAST_PART or len(strangers) < LEAST_STRANGERS:
        return None
    order = np.argsort(days[strangers], kind="stable")
    blocks = np.empty(len(strangers), np.int64)
    blocks[order] = np.arange(len(strangers)) * LEAST_GROUPS // len(strangers)
    of_each = tuple(strangers.tolist()), tuple(blocks.tolist())
    copies = _copies(labels, train[out], train[~out])
    return StrangerRows(name, "time", LEAST_GROUPS, *of_each, *copies)


def _copies(
    labels: Values | None, out: Places, kept: Places
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """For each row that goes, one that stays, of the same label where there is any: a split that
    follows the labels then stays where it is. Beside it the same for as many rows that may stay.
    """
    rng = np.random.default_rng(0)

    def taken(rows: Places, pool: Places) -> Numbers:
        found = rng.choice(pool, len(rows))
        if labels is not None:
            for value in np.unique(labels[rows]):
                same = pool[labels[pool] == value]
                of_it = labels[rows] == value
                if len(same):
                    found[of_it] = rng.choice(same, int(of_it.sum()))
        return tuple(int(i) for i in found)

    fewer = rng.permutation(kept)[: min(len(out), len(kept) // 2)]
    rest = np.setdiff1d(np.concatenate([kept, out]), fewer)
    return tuple(out.tolist()), taken(out, kept), tuple(fewer.tolist()), taken(fewer, rest)

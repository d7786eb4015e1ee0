"""Which container holds rows of which other one, and where: by the labels of pandas, by the rows
themselves, by a list of row numbers or a mask that the script holds, by a name that each row has in
both, or by their number.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sawbones.observe.sources.containers import FEW_KINDS, LEAST_ROWS, Hashes, Numbers, Places, Rows

if TYPE_CHECKING:
    from sawbones.observe.sources.log import Version

RECOGNISED = 0.9  # share of rows that must be found
SAME_COLUMN = 0.9999  # correlation of a column with itself, scaled
_LOOKED_BACK = 16  # earlier containers that the rows of one are looked for in
_COLUMNS_COMPARED = 8
_COLUMNS_TOGETHER = 64
_OF_A_TABLE = 0.5  # share of the measurements of some rows that must be columns of it
_ROUNDING = 1e-3  # spreads
_TOLD_APART = 0.5  # different rows, as a share of all
_MAPS = 24  # lists of row numbers and masks that are tried
_TEXT = (1 << 24) - 1  # a text in a column stands as so much of its checksum


@dataclass(frozen=True)
class _Names:
    """A name for each row, sorted, and the rows in that order."""

    values: Numbers
    order: Places


class Placing:
    def __init__(self, versions: Sequence[Version]) -> None:
        self._versions = versions
        self.space: list[int] = []  # the container that holds all rows; -1: row numbers, no data
        self.base: list[Places] = []  # the number of each row in that container
        self._tables: dict[int, dict[int, int]] = {}
        self._maps: list[Places] = []
        self._named: dict[int, list[_Names]] = {}
        for number in range(len(versions)):
            self._place(number)

    def is_whole(self, number: int) -> bool:
        base = self.base[number]
        return bool(np.array_equal(base, np.arange(len(base))))

    def _place(self, number: int) -> None:
        here = self._versions[number]
        self._maps = [*self._maps, *_maps_in(here)][-_MAPS:]
        if is_index(here):
            self.space.append(-1)
            self.base.append(np.zeros(0, np.int64))
            return
        found = (
            self._by_labels(number)
            or self._by_rows(here.rows, number)
            or self._by_map(here.rows, number)
            or self._by_name(here.rows, number)
            or self._by_count(here.rows, number)
        )
        if found is None:
            found = (number, np.arange(here.count))
        self.space.append(found[0])
        self.base.append(found[1])

    def _by_labels(self, number: int) -> tuple[int, Places] | None:
        """Where an earlier container of pandas has all labels of this one. Labels that only count
        the rows say nothing.
        """
        labels = self._versions[number].rows.index
        if labels is None or np.array_equal(labels, np.arange(len(labels))):
            return None
        for u in range(number - 1, -1, -1):
            other = self._versions[u].rows.index
            if other is None or self.space[u] < 0 or len(other) < len(labels):
                continue
            order = np.argsort(other, kind="stable")
            places = np.minimum(np.searchsorted(other[order], labels), len(other) - 1)
            if np.array_equal(other[order][places], labels):
                return self.space[u], self.base[u][order[places]]
        return None

    def given(self, rows: Rows) -> tuple[int, Places] | None:
        """Where rows that a model was given at once, and that no variable holds, come from: a
        scaled copy of a container of as many rows, or of those that row numbers pick.
        """
        return self._by_map(rows, len(self._versions), as_many=True)

    def _by_rows(self, rows: Rows, number: int) -> tuple[int, Places] | None:
        """Where the rows themselves are found in an earlier container of the same width."""
        hashes = rows.hashes
        alone = rows.numbers.shape[1] == 1  # single values repeat, whole rows are copies
        if alone and len(np.unique(hashes)) < RECOGNISED * len(hashes):
            return None
        for u in self._as_wide(rows, number):
            table = self._table(u)
            places = np.array([table.get(h, -1) for h in hashes.tolist()], np.int64)
            if np.mean(places >= 0) >= RECOGNISED:
                places = _in_order(places, hashes, self._versions[u].rows.hashes)
                if _is_in_place(places, self._versions[u].count):
                    return self.space[u], self.base[u]
                base = np.where(places >= 0, self.base[u][places], -1)
                return self.space[u], base
        return None

    def _by_map(self, rows: Rows, number: int, as_many: bool = False) -> tuple[int, Places] | None:
        """Where row numbers that the script holds pick rows of an earlier container, of which these
        are a scaled copy, or some columns of one; `as_many`: or all rows of one, as they stand.
        """
        count = len(rows.hashes)
        maps = [places for places in reversed(self._maps) if len(places) == count]
        for u in self._as_wide(rows, number, or_wider=True) if maps or as_many else ():
            other = self._versions[u]
            fits = [m for m in maps if other.count > count and int(m.max()) < other.count]
            if as_many and other.count == count:
                fits = [np.arange(count)]
            for places in fits:
                if _is_copy(rows.numbers, other.rows.numbers[places]):
                    return self.space[u], self.base[u][places]
        return None

    def _by_name(self, rows: Rows, number: int) -> tuple[int, Places] | None:
        """Where a container of as many rows has the same name for each of them (a customer, an
        accession number), as labels or as a column. What was grouped stands in the order of its
        names, whatever the order of the table they are described in.
        """
        count = len(rows.hashes)
        earlier = [
            u
            for u in range(number - 1, -1, -1)
            if self._versions[u].count == count and self.space[u] >= 0
        ]
        named = list(_names(rows)) if earlier else []
        for u in earlier if named else ():
            if u not in self._named:
                self._named[u] = list(_names(self._versions[u].rows))
            for theirs, mine in itertools.product(self._named[u], named):
                if np.array_equal(mine.values, theirs.values):
                    places = np.empty(count, np.int64)
                    places[mine.order] = theirs.order
                    return self.space[u], self.base[u][places]
        return None

    def _by_count(self, rows: Rows, number: int) -> tuple[int, Places] | None:
        """Where the latest container of as many rows has them. Two parts of one split may be equally
        long: then only the part that these are a scaled copy of can be theirs.
        """
        count = len(rows.hashes)
        earlier = [
            u
            for u in range(number - 1, -1, -1)
            if self._versions[u].count == count and self.space[u] >= 0
        ]
        if not earlier:
            return None
        if len({(self.space[u], np.sort(self.base[u]).tobytes()) for u in earlier}) > 1:
            tried = earlier[:_LOOKED_BACK]
            earlier = [u for u in tried if _is_copy(rows.numbers, self._versions[u].rows.numbers)]
        return (self.space[earlier[0]], self.base[earlier[0]]) if earlier else None

    def _as_wide(self, rows: Rows, number: int, or_wider: bool = False) -> Iterator[int]:
        """Earlier containers of the same width, the latest first. Smaller ones cannot hold it.
        `or_wider`: tables too, of which these rows may be some columns.
        """
        count, width = rows.numbers.shape
        looked = 0
        for u in range(number - 1, -1, -1):
            other = self._versions[u]
            if looked >= _LOOKED_BACK:
                return
            holds = self.space[u] >= 0 and other.count >= RECOGNISED * count
            table = or_wider and other.rows.numbers.shape[1] > 1
            if holds and (table or other.rows.numbers.shape[1] == width):
                looked += 1
                yield u

    def _table(self, number: int) -> dict[int, int]:
        if number not in self._tables:
            hashes = self._versions[number].rows.hashes.tolist()
            self._tables[number] = {h: i for i, h in reversed(list(enumerate(hashes)))}
        return self._tables[number]


def _in_order(places: Places, hashes: Hashes, others: Hashes) -> Places:
    """Two rows of a long column may be equal by chance: where rows stand one after another as they
    do in the other container, each is the one at its own place there.
    """
    own = np.arange(len(places))
    met = places >= 0
    offsets, counts = np.unique(places[met] - own[met], return_counts=True)
    at = own + offsets[counts.argmax()]
    inside = (at >= 0) & (at < len(others))
    is_same = inside & (others[np.where(inside, at, 0)] == hashes)
    return np.where(is_same, at, places)


def _is_in_place(places: Places, count: int) -> bool:
    """Whether rows that are found in a container of as many stand where they stood: the others were
    written to, row by row, as in a loop over time.
    """
    own = np.arange(len(places))
    return len(places) == count and bool(np.all((places < 0) | (places == own)))


def is_index(version: Version) -> bool:
    """Row numbers, each once: a permutation or a part of one."""
    numbers = version.rows.numbers
    if version.rows.is_text or numbers.shape[1] != 1 or len(numbers) <= FEW_KINDS:
        return False
    column = numbers[:, 0]
    whole = bool(np.all(np.isfinite(column)) and np.all(column == np.round(column)))
    return whole and column.min() >= 0 and len(np.unique(column)) == len(column)


def _names(rows: Rows) -> Iterator[_Names]:
    """Labels and columns that tell the rows from each other and do not just count them: whole
    numbers, or texts. The few texts of one checksum do not matter.
    """
    labels = () if rows.index is None else (rows.index, rows.index & _TEXT)
    for values in (*labels, *rows.numbers.T[:_COLUMNS_COMPARED]):
        column = values.astype(np.float32)
        if not np.all(np.isfinite(column)) or not np.array_equal(column, np.round(column)):
            continue
        counts = column.max() - column.min() < len(column)
        if not counts and len(np.unique(column)) >= RECOGNISED * len(column):
            order = np.argsort(column, kind="stable")
            yield _Names(column[order], order)


def _maps_in(version: Version) -> list[Places]:
    """Row numbers that a container stands for: its own, or those where a mask is set and where it
    is not.
    """
    if is_index(version):
        return [version.rows.numbers[:, 0].astype(np.int64)]
    numbers = version.rows.numbers
    if version.rows.is_text or numbers.shape[1] != 1:
        return []
    column = numbers[:, 0]
    if not np.array_equal(np.unique(column), [0.0, 1.0]):
        return []
    both = [np.flatnonzero(column == 1), np.flatnonzero(column == 0)]
    return [places for places in both if len(places) >= LEAST_ROWS]


def _is_copy(ours: Numbers, theirs: Numbers) -> bool:
    """Whether rows are those of another container, scaled: column by column, or, where it has other
    columns besides, as far as measurements are concerned, or by all that they have of it: in a
    table of counts and rates no column tells the rows apart, and all of them together do.
    """
    if ours.shape[1] == theirs.shape[1] and is_scaled(ours, theirs):
        return True
    others = _in_spreads(theirs)
    measured = [c for c in range(ours.shape[1]) if is_measured(ours[:, c])]
    measured = measured[:: 1 + len(measured) // _COLUMNS_COMPARED]
    if np.mean(_found_in(others, _in_spreads(ours[:, measured])) or 0) >= _OF_A_TABLE:
        return True
    mine = _in_spreads(ours[:, :: 1 + ours.shape[1] // _COLUMNS_TOGETHER])
    found = np.array(_found_in(others, mine), bool)
    if not found.size or float(np.mean(found)) < _OF_A_TABLE:
        return False
    return len(np.unique(mine[:, found], axis=0)) >= _TOLD_APART * len(mine)


def _found_in(others: npt.NDArray[np.float64], mine: npt.NDArray[np.float64]) -> list[bool]:
    """Which of these columns, in spreads, are columns of another container in every row: a
    correlation would not do, two parts of a count of the rows have one of 1.
    """
    if not mine.size or not others.size:
        return []
    alike = mine.T @ others
    nearest = np.abs(alike).argmax(1)
    signs = np.sign(alike[np.arange(len(nearest)), nearest])
    off = np.abs(mine - signs * others[:, nearest]).max(0)
    return [bool(o) for o in off <= _ROUNDING]


def is_measured(column: Numbers) -> bool:
    """A value of its own in nearly every row: two columns of such do not follow by accident."""
    return bool(np.all(np.isfinite(column)) and len(np.unique(column)) >= RECOGNISED * len(column))


def _in_spreads(numbers: Numbers) -> npt.NDArray[np.float64]:
    """Columns that vary, without anything missing, as distances from their mean in spreads."""
    plain = numbers.astype(np.float64)
    spread = plain.std(0)
    used = np.isfinite(spread) & (spread > 0)
    return np.asarray((plain[:, used] - plain[:, used].mean(0)) / spread[used])


def is_scaled(ours: Numbers, theirs: Numbers) -> bool:
    """Whether columns are the same but for scale and offset, as far as they vary."""
    step = 1 + ours.shape[1] // _COLUMNS_COMPARED
    compared = 0
    for column in range(0, ours.shape[1], step):
        a, b = ours[:, column].astype(np.float64), theirs[:, column].astype(np.float64)
        known = np.isfinite(a) & np.isfinite(b)
        if known.sum() < LEAST_ROWS or a[known].std() == 0 or b[known].std() == 0:
            continue
        compared += 1
        if abs(float(np.corrcoef(a[known], b[known])[0, 1])) < SAME_COLUMN:
            return False
    return compared > 0

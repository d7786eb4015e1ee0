"""Whether the trained rows tell their labels in another order than the one they are trained in.

Rows that are trained on are followed back to where they stood when they entered the script, by a
name that each row has in both tables where there is one, and the labels are looked for among the
columns that stood beside them. Besides, one of both may have been sorted by numbers that were read
as texts (1, 10, 2), row by row or file by file, or repeated row by row where the other was repeated
as a whole. Where the same rows and labels tell nothing as they are trained on, and much in one of
these orders, they have come apart. Labels that are noise, and models that cannot learn, look alike
in every order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sawbones.observe.signals.label_probe import (
    LEAST_PAIRS,
    MAX_SAMPLES,
    PairLog,
    probe_best,
    probe_pairs,
)
from sawbones.observe.sources.answers import follows_answer
from sawbones.observe.sources.containers import FEW_KINDS, Numbers, Places, hash_rows
from sawbones.observe.sources.placing import Placing
from sawbones.schema import Site
from sawbones.schema.labels import PairedBefore

if TYPE_CHECKING:
    from sawbones.observe.sources.log import Version

MOST_COLUMNS = 16  # of one container
MOST_ORDERS = 160
MOST_COPIES = 16
SHARE_FOUND = 0.95  # of the trained labels, among those of a column with many kinds
SAMPLING_ERRORS = 3.0  # between the share of a class in a column and among what is trained on
CLEAR = 4.0  # standard deviations: these pairs are not apart
LEAST_FILES = 11  # fewer numbers are in the same order as texts


@dataclass(frozen=True)
class _Trained:
    """Rows of a container that are trained on, in no order, and their targets."""

    version: Version
    rows: Places
    targets: Numbers

    @property
    def inputs(self) -> list[Numbers]:
        return list(self.version.rows.numbers[self.rows])


@dataclass(frozen=True)
class _Beside:
    """A column of labels, and what of it stands beside the trained rows."""

    holder: Version
    column: Numbers  # of all rows of its container
    values: Numbers  # of the trained rows
    is_as_trained: bool

    def has_same_labels(self, other: _Beside) -> bool:
        """In another order, or each of them several times."""
        (kinds, counts), (theirs, numbers) = (
            np.unique(b.column, return_counts=True) for b in (self, other)
        )
        return np.array_equal(kinds, theirs) and np.array_equal(
            counts * len(other.column), numbers * len(self.column)
        )


def paired_before(versions: Sequence[Version], pairs: PairLog) -> PairedBefore | None:
    known = _known(pairs)
    tables = list(_tables(versions, known)) if len(known) >= LEAST_PAIRS else []
    if not tables:
        return None
    number, given = max(tables, key=lambda pair: len(pair[1].rows))
    now = probe_pairs(given.inputs, given.targets.tolist(), num_in_row=0)
    if now is None or now.z >= CLEAR:
        return None
    placing = Placing(versions)
    asked = [
        (_first_in_order(versions, placing, place), table.version, beside)
        for place, table in tables
        for holder in versions
        if holder.count == table.version.count and holder is not table.version
        for beside in _columns(holder, table.rows, table.targets)
        if beside.is_as_trained
    ]
    origin = list(_of_origin(versions, placing, number, given))
    as_trained = [beside for *_, beside in asked] + [b for b in origin if b.is_as_trained]
    orders: list[tuple[Numbers, PairedBefore]] = []
    for beside in origin:
        if not beside.is_as_trained and _same_labels(beside, given.targets, as_trained):
            made = [max(v, b.holder, key=_event) for v, _, b in asked if b.has_same_labels(beside)]
            made += [b.holder for b in origin if b.is_as_trained and b.has_same_labels(beside)]
            later = [version for version in made if version.event > beside.holder.event]
            apart = min(later, key=_event, default=None)
            site = _site(beside.holder)
            what = f"as the script held them at {site}"
            orders.append(
                (
                    beside.values,
                    PairedBefore(now, now, what, None if apart is None else _site(apart)),
                )
            )
    for _, version, beside in asked:
        if version is given.version and len(orders) < MOST_ORDERS:
            count = len(beside.column)
            for what, order in (*_repeated_otherwise(count), *_sorted_as_texts(count)):
                paired = PairedBefore(now, now, what, None)
                orders.append((beside.column[order][given.rows], paired))
    if not orders:
        return None
    best, then = probe_best(given.inputs, [values.tolist() for values, _ in orders[:MOST_ORDERS]])
    found = orders[best][1]
    return None if then is None else PairedBefore(then, now, found.order, found.apart)


def _known(pairs: PairLog) -> dict[int, float]:
    rows, labels = pairs.rows()
    if not rows or len({row.numel() for row in rows}) != 1 or rows[0].is_complex():
        return {}
    numbers = np.stack([row.detach().float().numpy().reshape(-1) for row in rows])
    return dict(zip(hash_rows(numbers).tolist(), labels, strict=True))


def _event(version: Version) -> int:
    return version.event


def _site(version: Version) -> Site:
    return Site(version.file, version.line, version.code.co_name)


def _tables(
    versions: Sequence[Version], known: Mapping[int, float]
) -> Iterator[tuple[int, _Trained]]:
    hashes = np.fromiter(known, np.int64, len(known))
    for number, version in enumerate(versions):
        found = np.isin(version.rows.hashes, hashes)
        if found.sum() < LEAST_PAIRS:
            continue
        _, first = np.unique(version.rows.hashes, return_index=True)
        rows = np.intersect1d(np.flatnonzero(found), first)
        if len(rows) >= LEAST_PAIRS:
            # half of them answers for the other half: classes must not stand in a row
            rows = np.random.default_rng(0).permutation(rows)[:MAX_SAMPLES]
            targets = [known[h] for h in version.rows.hashes[rows].tolist()]
            yield number, _Trained(version, rows, np.array(targets, np.float32))


def _first_in_order(versions: Sequence[Version], placing: Placing, number: int) -> Version:
    """The container in which the rows were put into the order that they have in this one."""
    for other, version in enumerate(versions[:number]):
        same_rows = placing.space[other] == placing.space[number]
        if same_rows and np.array_equal(placing.base[other], placing.base[number]):
            return version
    return versions[number]


def _columns(holder: Version, rows: Places, targets: Numbers) -> Iterator[_Beside]:
    for column in holder.rows.numbers.T[:MOST_COLUMNS]:
        values = column[rows]
        yield _Beside(holder, column, values, follows_answer(values, targets))


def _of_origin(
    versions: Sequence[Version], placing: Placing, number: int, given: _Trained
) -> Iterator[_Beside]:
    """Columns by the rows as they entered the script, before anything changed their order."""
    space, wanted = placing.space[number], placing.base[number][given.rows]
    for other, holder in enumerate(versions):
        base = placing.base[other]
        if placing.space[other] != space or holder is given.version or len(base) == 0:
            continue
        places = np.full(int(max(base.max(), wanted.max())) + 2, -1, np.int64)
        places[base] = np.arange(len(base))
        found = places[wanted]
        if np.all(found >= 0) and np.all(wanted >= 0):
            yield from _columns(holder, found, given.targets)


def _same_labels(beside: _Beside, targets: Numbers, as_trained: Sequence[_Beside]) -> bool:
    """The column holds what is trained on, in another order: it is not some other label."""
    if as_trained:
        return any(beside.has_same_labels(other) for other in as_trained)
    kinds, counts = np.unique(targets, return_counts=True)
    if len(kinds) > FEW_KINDS:
        return float(np.isin(targets, beside.column).mean()) >= SHARE_FOUND
    theirs, numbers = np.unique(beside.column, return_counts=True)
    if not np.array_equal(kinds, theirs):
        return False
    share, own = numbers / len(beside.column), counts / len(targets)
    errors = np.sqrt(share * (1 - share) / len(targets))
    return bool(np.all(np.abs(share - own) <= SAMPLING_ERRORS * errors))


def _sorted_as_texts(count: int) -> Iterator[tuple[str, Places]]:
    """Orders that undo it, for rows or labels in files of equal length with numbers from 0 or 1."""
    for files in range(LEAST_FILES, count + 1):
        if count % files:
            continue
        for first in (0, 1):
            texts = sorted(range(files), key=lambda number: str(number + first))
            as_texts = np.array(texts, np.int64)
            for order in (as_texts, np.argsort(as_texts)):
                rows = order[:, None] * (count // files) + np.arange(count // files)
                what = f"with the numbers of {files} files sorted as numbers and not as texts"
                yield what, rows.reshape(-1)


def _repeated_otherwise(count: int) -> Iterator[tuple[str, Places]]:
    """a a b b for a b a b, and back."""
    for copies in range(2, MOST_COPIES + 1):
        if count % copies == 0 and count // copies > copies:
            what = f"with each of {count // copies} labels repeated {copies} times the other way"
            rows = np.arange(count)
            yield what, rows.reshape(copies, -1).T.reshape(-1)
            yield what, rows.reshape(-1, copies).T.reshape(-1)

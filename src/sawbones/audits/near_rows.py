"""Rows of a table that are nearly those of another: banded cells propose, the values themselves
decide.

A number is laid on a grid of a twentieth of its spread, the columns are dealt into bands, and two
rows that fall into the same cells in all columns of one band are compared value by value: a number
agrees within one step of its grid, anything else when it is equal. Rows may disagree in so few
columns that the Jaccard index of their sets of (column, value) stays at the threshold. With one
band more than such columns, a pair that keeps its cells elsewhere always meets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sawbones.audits.case import Case
from sawbones.audits.engine.session import ibis_module
from sawbones.audits.engine.split import Split
from sawbones.audits.options import CannotLook
from sawbones.audits.overlap import repeats

GRID = 20  # steps in a spread
MOST_ROWS = 50_000  # of the indexed split; the other one may be of any size
MOST_PAIRS = 300_000
MOST_BANDS = 6
SURE = 7.0  # nats that a chance match is short of happening once among all pairs


@dataclass(frozen=True, slots=True)
class Grid:
    """The columns compared, the step of each number (None for others), and the columns of each
    band.
    """

    names: list[str]
    steps: list[float | None]
    bands: list[list[int]]
    most: int  # columns that may disagree


@dataclass(frozen=True, slots=True)
class NearRows:
    count: int  # rows of the indexed split with a near-twin that is no exact copy
    rows: int  # rows looked at
    stride: int
    pairs: list[tuple[dict[str, Any], dict[str, Any], float]]  # (base row, other row, Jaccard)

    @property
    def share(self) -> float:
        return self.count / max(1, self.rows)


def grid(case: Case, base: Split, other: Split) -> Grid:
    """Raises CannotLook where rows could agree this far without one being made from the other."""
    names = [
        n
        for n in case.key_columns
        if case.first.columns[n].kind in ("number", "category") and n in case.first.sample
    ]
    if len(names) < 3:
        raise CannotLook("fewer than three columns of numbers or categories to compare rows by")
    if not repeats(case, base).telling:
        raise CannotLook(f"rows of {base.role} have too few forms to tell near copies from chance")
    steps = [_step(case, n, base, other) for n in names]
    told = [_nats(case.first.sample[n], step) for n, step in zip(names, steps, strict=True)]
    least = case.thresholds.jaccard
    most = int(len(names) * (1 - least) / (1 + least) + 1e-9)
    need = math.log(base.rows) + math.log(other.rows) + SURE
    # The columns that tell most may be the ones that disagree.
    if sum(sorted(told)[: len(names) - most]) < need:
        raise CannotLook(
            f"{len(names)} columns tell too little about a row to tell near copies from chance"
        )
    # A band more than needed, where there is enough to tell: noise moves some numbers over the edge
    # of their cell.
    for count in (most + 2, max(2, most + 1)):
        bands, told_least = _dealt(told, min(MOST_BANDS, count))
        if math.log(base.rows) + math.log(min(other.rows, MOST_ROWS)) - told_least <= math.log(
            MOST_PAIRS / 2
        ):
            return Grid(names, steps, bands, most)
    raise CannotLook("parts of a row have too few forms to look rows up by")


def _dealt(told: list[float], count: int) -> tuple[list[list[int]], float]:
    """Columns in bands that tell about equally much, and what the least of them tells."""
    bands: list[list[int]] = [[] for _ in range(count)]
    held = [0.0] * count
    for index in sorted(range(len(told)), key=lambda i: -told[i]):
        least = held.index(min(held))
        bands[least].append(index)
        held[least] += told[index]
    return [band for band in bands if band], min(held)


def _step(case: Case, name: str, base: Split, other: Split) -> float | None:
    if (
        not (base.is_number(name) and other.is_number(name))
        or case.first.sample[name].dtype == object
    ):
        return None
    values = case.first.sample[name]
    values = values[np.isfinite(values)]
    low, high = np.quantile(values, [0.1, 0.9]) if len(values) else (0.0, 0.0)
    spread = float(high - low) / 2.56 or float(values.std() if len(values) else 0.0)
    return spread / GRID if spread > 0 and math.isfinite(spread) else 1.0


def _nats(values: Any, step: float | None) -> float:
    """What the cell of a row tells: minus the logarithm of the chance that two rows have the
    same.
    """
    cells = (
        values.astype(str) if step is None else np.floor(np.nan_to_num(values, nan=-1e300) / step)
    )
    counts = np.unique(cells, return_counts=True)[1].astype(np.float64)
    total = counts.sum()
    same = float((counts * (counts - 1)).sum() / max(1.0, total * (total - 1)))
    return -math.log(max(same, 1.0 / max(4.0, total * total)))


def near_rows(case: Case, made: Grid, base: Split, other: Split) -> NearRows:
    """Rows of `other` with a near-twin in `base` that is no exact copy."""
    ibis, session = ibis_module(), case.session
    stride = -(-other.rows // MOST_ROWS)
    chosen = other.table
    if stride > 1:
        fields = other.key_fields([case.finder] if case.finder else made.names)
        chosen = chosen.filter((ibis.struct(fields).hash() % stride) == 0)
    theirs = session.keep(_with_bands(made, _values(made, other, chosen, "o"), "o"))
    rows = (
        other.rows if stride == 1 else int(session.rows(theirs.aggregate(n=theirs.count()))[0]["n"])
    )
    mine = session.keep(_candidates(case, made, base, theirs))
    found: dict[tuple[Any, ...], tuple[tuple[Any, ...], float]] = {}
    for number in range(len(made.bands)):
        band = f"band{number}"
        left = mine.drop(*(n for n in mine.columns if n.startswith("band") and n != band))
        right = theirs.drop(*(n for n in theirs.columns if n.startswith("band") and n != band))
        pairs = left.inner_join(right, band).drop(band).limit(MOST_PAIRS)
        for here, there, similar in _verified(made, session.arrow(pairs)):
            if here not in found or similar > found[here][1]:
                found[here] = (there, similar)
    shown = sorted(found.items(), key=lambda item: (-item[1][1], repr(item[0])))[:10]
    named = [
        (dict(zip(made.names, left, strict=True)), dict(zip(made.names, right, strict=True)), s)
        for right, (left, s) in shown
    ]
    return NearRows(len(found), rows, stride, named)


def _candidates(case: Case, made: Grid, base: Split, theirs: Any) -> Any:
    """Rows of the base that meet any row of the other split in a band, found by one narrow pass and
    fetched by another.
    """
    whole = _values(made, base, base.table, "b")
    if case.finder not in made.names:
        return _with_bands(made, whole, "b")
    key = f"b{made.names.index(case.finder)}"
    bands = [f"band{number}" for number in range(len(made.bands))]
    narrow = case.session.keep(_with_bands(made, whole, "b").select(key, *bands))
    met = ibis_module().union(
        *(narrow.semi_join(theirs.select(band), band).select(key) for band in bands), distinct=True
    )
    return _with_bands(made, whole.semi_join(met, key), "b")


def _values(made: Grid, split: Split, table: Any, side: str) -> Any:
    """The compared columns: numbers as they are, the rest as normalised text."""
    texts = split.key_fields(
        [n for n, step in zip(made.names, made.steps, strict=True) if step is None]
    )
    plain = iter(texts.values())
    return table.select(
        **{
            f"{side}{index}": next(plain).cast("string") if step is None else split.number(name)
            for index, (name, step) in enumerate(zip(made.names, made.steps, strict=True))
        }
    )


def _with_bands(made: Grid, values: Any, side: str) -> Any:
    """And beside them one hash for each band, of the cells in its columns."""
    ibis = ibis_module()
    hashes = {}
    for number, band in enumerate(made.bands):
        cells = {}
        for index in band:
            value, step = values[f"{side}{index}"], made.steps[index]
            cells[f"k{index}"] = (
                value
                if step is None
                else ibis.coalesce(
                    (value * (1 / step)).floor().cast("float64"), ibis.literal(-1e300)
                )
            )
        hashes[f"band{number}"] = ibis.struct(cells).hash()
    return values.mutate(**hashes)


def _verified(made: Grid, pairs: Any) -> list[tuple[tuple[Any, ...], tuple[Any, ...], float]]:
    """(other row, base row, Jaccard) of the pairs that agree in enough columns and not in all of
    them exactly.
    """
    if not pairs.num_rows:
        return []
    apart, exact = np.zeros(pairs.num_rows, dtype=np.int64), np.ones(pairs.num_rows, dtype=np.bool_)
    columns = []
    for index, step in enumerate(made.steps):
        left, right = (
            np.array(pairs.column(f"{side}{index}").to_pylist(), dtype=object) for side in "bo"
        )
        if step is None:
            same = agrees = left == right
        else:
            a, b = left.astype(np.float64), right.astype(np.float64)
            both_missing = np.isnan(a) & np.isnan(b)
            same, agrees = (a == b) | both_missing, (np.abs(a - b) <= step) | both_missing
        apart += ~agrees
        exact &= same
        columns.append((left, right))
    size = len(made.names)
    kept = np.flatnonzero((apart <= made.most) & ~exact)
    return [
        (
            tuple(right[i] for _, right in columns),
            tuple(left[i] for left, _ in columns),
            float((size - apart[i]) / (size + apart[i])),
        )
        for i in kept
    ]

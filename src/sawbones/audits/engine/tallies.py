"""Counts of bins: every numeric column's histogram and every category's counts, by label, in one
query each.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sawbones.audits.engine.session import ibis_module
from sawbones.audits.engine.split import MOST_CATEGORIES, Split

FloatArray = npt.NDArray[np.float64]
BINS = 32
GRID = 128
MISSING = "‹missing›"


class Tally:
    """Counts of one column by bin and group: `counts[group][bin]`; the last bin of a number is
    "missing".

    With a value to sum, `sums` and `squares` hold its sums in each bin.
    """

    def __init__(self, bins: list[str]) -> None:
        self.bins = bins
        self.counts: dict[Any, FloatArray] = {}
        self.sums: dict[Any, FloatArray] = {}
        self.squares: dict[Any, FloatArray] = {}

    @property
    def total(self) -> FloatArray:
        return (
            np.sum(list(self.counts.values()), axis=0) if self.counts else np.zeros(len(self.bins))
        )

    def add(self, group: Any, index: int, row: Mapping[str, Any]) -> None:
        for target, key in ((self.counts, "n"), (self.sums, "s1"), (self.squares, "s2")):
            target.setdefault(group, np.zeros(len(self.bins)))[index] += float(row.get(key) or 0.0)


@dataclass(frozen=True, slots=True)
class Cuts:
    """Inner edges of a column's bins. With a step they lie on an even grid, where a value's bin is
    one multiplication away.

    With a scale the grid is even in sign(z) ln(1 + |z|), z = (x - centre) / scale: fine at the
    centre, coarse in a long tail.
    """

    edges: FloatArray
    step: float | None = None
    low: float = 0.0
    centre: float = 0.0
    scale: float | None = None


def cuts_of(values: FloatArray) -> Cuts:
    """A grid where one resolves the column well; else quantiles; between the values where there are
    few.
    """
    known = values[np.isfinite(values)]
    if not len(known):
        return Cuts(np.zeros(0))
    distinct = np.unique(known)
    if distinct[-1] - distinct[0] <= GRID and (known == np.floor(known)).all():
        low = float(distinct[0]) - 0.5
        return Cuts(
            low + np.arange(int(distinct[-1] - distinct[0]) + 2, dtype=np.float64), 1.0, low
        )
    if len(distinct) <= BINS:
        return Cuts((distinct[1:] + distinct[:-1]) / 2)
    centre, scale = (
        float(np.median(known)),
        float(np.subtract(*np.quantile(known, [0.75, 0.25]))) / 4,
    )
    bent = _bent(known, centre, scale) if scale > 0 else known
    for shown, used in ((known, None), (bent, scale if scale > 0 else None)):
        low, high = (float(v) for v in np.quantile(shown, [0.002, 0.998]))
        step = (high - low) / GRID
        if not (step > 0 and np.isfinite(step)):
            continue
        counts = np.histogram(shown, bins=GRID, range=(low, high))[0]
        if counts.max() <= 0.04 * len(known) + 8:
            grid: FloatArray = low + step * np.arange(GRID + 1, dtype=np.float64)
            edges: FloatArray = (
                grid if used is None else centre + scale * np.sign(grid) * np.expm1(np.abs(grid))
            )
            return Cuts(edges, step, low, centre, used)
    # The finest shares that still leave some ten sampled rows in a bin.
    finest = int(min(BINS, max(5, len(known) // 10)))
    return Cuts(np.unique(np.quantile(known, np.linspace(0, 1, finest + 1)[1:-1])))


def _bent(x: FloatArray, centre: float, scale: float) -> FloatArray:
    z = (x - centre) / scale
    bent: FloatArray = np.sign(z) * np.log1p(np.abs(z))
    return bent


def bucket(column: Any, cuts: Cuts) -> Any:
    """Number of edges below the value: arithmetic on a grid, else nested comparisons (five for 32
    bins); on any engine.
    """
    ibis = ibis_module()
    edges = cuts.edges
    if cuts.step is not None:
        if cuts.scale is not None:
            z = (column - cuts.centre) * (1 / cuts.scale)
            column = z.sign() * (z.abs() + 1.0).ln()
        place = (column - cuts.low) * (1 / cuts.step)
        # Clipped before it becomes an integer: a far outlier must not overflow.
        inside_grid = ibis.greatest(ibis.least(place, len(edges) - 0.5), -0.5)
        return (inside_grid.floor() + 1).cast("int16")

    def inside(low: int, high: int) -> Any:
        if low == high:
            return ibis.literal(low, "int16")
        middle = (low + high) // 2
        return ibis.ifelse(
            column <= float(edges[middle]), inside(low, middle), inside(middle + 1, high)
        )

    return inside(0, len(edges))


def tally_numbers(
    split: Split, cuts: Mapping[str, Cuts], by: Any = None, value: Any = None
) -> dict[str, Tally]:
    """Histograms of all named columns in one query. `by` and `value` are expressions over the
    split's table.
    """
    ibis = ibis_module()
    names = list(cuts)
    parts = []
    for index, name in enumerate(names):
        column = split.number(name)
        place = ibis.ifelse(column.isnull(), ibis.literal(-1, "int16"), bucket(column, cuts[name]))
        parts.append(_counted(split, index, place.cast("int16"), by, value))
    tallies = {name: Tally([*_ranges(cuts[name].edges), MISSING]) for name in names}
    for row in _rows(split, parts):
        tally = tallies[names[row["c"]]]
        tally.add(row.get("g"), len(tally.bins) - 1 if row["b"] < 0 else row["b"], row)
    return tallies


def tally_categories(
    split: Split, names: list[str], by: Any = None, value: Any = None
) -> dict[str, Tally]:
    """Counts of every category. Only for columns that are known to have few: at most
    MOST_CATEGORIES come back for each.
    """
    parts = [
        _counted(split, i, split.category(name).fill_null(MISSING), by, value)
        for i, name in enumerate(names)
    ]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for row in _rows(split, parts):
        found[names[row["c"]]].append(row)
    tallies = {}
    for name, rows in found.items():
        bins = sorted({row["b"] for row in rows})[: 2 * MOST_CATEGORIES]
        place = {b: i for i, b in enumerate(bins)}
        tallies[name] = Tally(bins)
        for row in rows:
            if row["b"] in place:
                tallies[name].add(row.get("g"), place[row["b"]], row)
    return tallies


def _counted(split: Split, index: int, place: Any, by: Any, value: Any) -> Any:
    ibis = ibis_module()
    keys: dict[str, Any] = {"b": place} | ({"g": by} if by is not None else {})
    chosen = split.table.select(**keys, **({"v": value} if value is not None else {}))
    sums = {"s1": chosen.v.sum(), "s2": (chosen.v * chosen.v).sum()} if value is not None else {}
    grouped = chosen.group_by(list(keys)).aggregate(n=chosen.count(), **sums)
    return grouped.mutate(c=ibis.literal(index, "int32"))


def _rows(split: Split, parts: list[Any]) -> list[dict[str, Any]]:
    if not parts:
        return []
    ibis = ibis_module()
    # A query of hundreds of parts takes a planner longer than the rows do.
    found: list[dict[str, Any]] = []
    for start in range(0, len(parts), 40):
        some = parts[start : start + 40]
        found += split.session.rows(some[0] if len(some) == 1 else ibis.union(*some))
    return found


def _ranges(edges: FloatArray) -> list[str]:
    if not len(edges):
        return ["all"]
    inner = [f"{a:.4g} … {b:.4g}" for a, b in itertools.pairwise(edges)]
    return [f"≤ {edges[0]:.4g}", *inner, f"> {edges[-1]:.4g}"]


def aligned(reference: Tally, current: Tally) -> tuple[list[str], FloatArray, FloatArray]:
    """Two tallies of one category over the union of what both have."""
    bins = sorted({*reference.bins, *current.bins})
    place = {b: i for i, b in enumerate(bins)}
    both = []
    for tally in (reference, current):
        counts = np.zeros(len(bins))
        for name, n in zip(tally.bins, tally.total, strict=True):
            counts[place[name]] += n
        both.append(counts)
    return bins, both[0], both[1]

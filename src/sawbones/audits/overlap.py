"""Rows that two splits share, and rows that one split has twice, from hashes of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sawbones.audits.case import Case
from sawbones.audits.engine.session import ibis_module
from sawbones.audits.engine.split import Split
from sawbones.stats.overlaps import chance_of_match

MOST_EXAMPLES = 10
# Rows match by chance where a row has few possible forms; expected matches per row above this, and
# equal rows prove nothing.
CHANCE = 0.01
FEW_FORMS = 0.5  # distinct rows / rows


@dataclass(frozen=True, slots=True)
class Repeats:
    """Rows of one split by how often they are there."""

    rows: int
    distinct: int
    singles: int
    doubled: int  # rows beyond the first of each
    conflicting: int  # rows in groups of equal features and unequal labels
    telling: bool  # rows have so many possible forms that equal ones are copies

    @property
    def chance(self) -> float:
        """How often a further row of the same source would equal one of these without being a
        copy.
        """
        return 0.0 if self.telling else chance_of_match(self.singles, self.rows)


@dataclass(frozen=True, slots=True)
class Overlap:
    shared: int  # rows of the smaller-role split that are in the other
    rows: int
    other_label: int  # of them, those whose label differs there

    @property
    def share(self) -> float:
        return self.shared / max(1, self.rows)


def repeats(case: Case, split: Split) -> Repeats:
    key = ("repeats", split.role)
    if key not in case.found:
        case.found[key] = _repeats(case, split)
    found: Repeats = case.found[key]
    return found


def _repeats(case: Case, split: Split) -> Repeats:
    keys = case.keys(split)
    labelled = "y" in keys.columns
    extremes = {"low": keys.y.min(), "high": keys.y.max()} if labelled else {}
    groups = keys.group_by(list(case.session.hashes)).aggregate(n=keys.count(), **extremes)
    wanted = {"distinct": groups.count(), "singles": (groups.n == 1).cast("int64").sum()}
    if labelled:
        wanted["conflicting"] = (groups.low != groups.high).ifelse(groups.n, 0).sum()
    row = case.session.rows(groups.aggregate(**wanted))[0]
    distinct, singles = int(row["distinct"]), int(row["singles"] or 0)
    telling = distinct >= FEW_FORMS * split.rows and _chance(case, split) < CHANCE
    return Repeats(
        split.rows,
        distinct,
        singles,
        split.rows - distinct,
        int(row.get("conflicting") or 0),
        telling,
    )


def _chance(case: Case, split: Split) -> float:
    """Expected rows of the split that equal a given row, were its columns independent of each
    other.
    """
    log = np.log(split.rows)
    for name in case.key_columns:
        values = case.first.sample.get(name)  # the forms of a row are the same in every split
        if values is None:
            # Text and keys: not sampled, and different for nearly every row.
            column = split.columns[name]
            log -= np.log(max(1, column.distinct))
            continue
        log += np.log(_collisions(values))
    return float(np.exp(log))


def _collisions(values: Any) -> float:
    """Probability that two rows have the same value."""
    counts = np.unique(
        values.astype(str) if values.dtype == object else np.nan_to_num(values, nan=-1.2345e300),
        return_counts=True,
    )[1]
    n = counts.sum()
    if n < 2:
        return 1.0
    pairs = float((counts * (counts - 1.0)).sum() / (n * (n - 1.0)))
    return max(pairs, float(0.5 / (n * (n - 1.0))))


def overlap(case: Case, base: Split, other: Split) -> tuple[Overlap, Any]:
    """How many rows of `other` are in `base` too, and the table of their hashes."""
    key = ("overlap", base.role, other.role)
    if key not in case.found:
        case.found[key] = _overlap(case, base, other)
    found: tuple[Overlap, Any] = case.found[key]
    return found


def _overlap(case: Case, base: Split, other: Split) -> tuple[Overlap, Any]:
    mine, theirs = case.keys(base), case.keys(other)
    labelled = "y" in mine.columns and "y" in theirs.columns
    # The hash table is built over the other split's keys, as a rule the smaller one; what comes
    # back of the base is small.
    hashes = list(case.session.hashes)
    hits = mine.semi_join(theirs, hashes)
    extremes = {"low": hits.y.min(), "high": hits.y.max()} if labelled else {}
    extremes |= {"f": hits.f.min()} if case.finder else {}
    shared = case.session.keep(hits.group_by(hashes).aggregate(n=hits.count(), **extremes))
    joined = theirs.inner_join(shared, hashes)
    wanted = {"shared": joined.count()}
    if labelled:
        wanted["other"] = ((joined.y < joined.low) | (joined.y > joined.high)).cast("int64").sum()
    row = case.session.rows(joined.aggregate(**wanted))[0]
    return Overlap(int(row["shared"]), other.rows, int(row.get("other") or 0)), shared


def examples(
    case: Case, split: Split, hashes: Any, most: int = MOST_EXAMPLES
) -> list[dict[str, Any]]:
    """Rows of the split behind some hashes, with the columns that name a row first."""
    names = list(
        dict.fromkeys([*(n for n in case.row_names if n in split.columns), *case.key_columns])
    )
    label = [case.options.label] if case.options.label in split.columns else []
    ibis = ibis_module()
    found = case.session.rows(
        hashes.select(*(n for n in ("h1", "f") if n in hashes.columns)).order_by("h1").limit(most)
    )
    wanted = [row["h1"] for row in found]
    values = [row.get("f") for row in found]
    where = None
    if wanted and case.finder and all(value is not None for value in values):
        # As text: a bare number in a query may be read as a decimal, and be off by its last digit
        # as a double.
        where = split.number(case.finder).isin(
            [ibis.literal(repr(value)).cast("float64") for value in values]
        )
    # One hash is enough to find a few rows again by; what it brings too many is told apart by the
    # columns.
    rows = split.hashed(
        case.key_columns,
        where,
        **{n: split.table[n] for n in [*names, *label] if n not in case.session.hashes},
    )
    return case.session.rows(rows.filter(ibis._.h1.isin(wanted)).order_by("h1").limit(3 * most))


def pairs(case: Case, base: Split, other: Split, hashes: Any) -> list[str]:
    """Row here = row there, for at most ten shared rows, each compared column by column and not by
    its hash alone.
    """
    left = {r["h1"]: r for r in reversed(examples(case, base, hashes))}
    right = {r["h1"]: r for r in reversed(examples(case, other, hashes))}
    both = [key for key in left if key in right and _same(left[key], right[key], case.key_columns)][
        :MOST_EXAMPLES
    ]
    return [
        f"{base.role}: {case.row_text(left[key])}  =  {other.role}: {case.row_text(right[key])}"
        for key in both
    ]


def _same(left: dict[str, Any], right: dict[str, Any], names: list[str]) -> bool:
    return all(_plain(left.get(name)) == _plain(right.get(name)) for name in names)


def _plain(value: Any) -> Any:
    return " ".join(value.lower().split()) if isinstance(value, str) else value


def doubled_examples(case: Case, split: Split, conflicting: bool) -> list[str]:
    ibis = ibis_module()
    keys = case.keys(split)
    extremes = {"low": keys.y.min(), "high": keys.y.max()} if "y" in keys.columns else {}
    extremes |= {"f": keys.f.min()} if case.finder else {}
    groups = (
        keys.group_by(list(case.session.hashes))
        .aggregate(n=keys.count(), **extremes)
        .filter(ibis._.n > 1)
    )
    if conflicting:
        groups = groups.filter(ibis._.low != ibis._.high)
    return [case.row_text(row, 8) for row in examples(case, split, groups, 5)][:MOST_EXAMPLES]

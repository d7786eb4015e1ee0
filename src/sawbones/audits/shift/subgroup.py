"""A segment on which the model is far worse than on the whole

## What it sees
The error of every segment: each value of the columns named by `--segment` (a number in quarters;
without the flag all categories), and pairs of them, found by a beam search. Fires when a segment of
at least `segment_rows` (1 %) has an error of `segment` (0.1) above the mean, and neither its
confidence interval nor the number of segments looked at explains that.

## Why it matters
The mean hides it: one per cent of the users can be served by a coin toss while the score moves in
the third digit.

## Looks like
Complaints from one country, device or language; an overall score that has not moved.

## Example
    print(accuracy_score(labels, predictions))

## Use instead
    wrong = labels != predictions
    print(wrong.groupby([rows["region"], rows["device"]]).agg(["mean", "size"]).sort_values("mean"))

## Confirm it
Score the segment on further rows: the interval of the finding says where the error should lie.

## False alarms
Among a thousand segments one is bad by chance: the p-value is multiplied by their number. A segment
that is hard by nature (rare classes) is a finding all the same; raise `segment` where that is
accepted.

## References
Chung et al., "Slice Finder: automated data slicing for model validation" (2019). Eyuboglu et al.,
"Domino" (2022).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sawbones.audits.case import Case, made, per_cent
from sawbones.audits.engine.session import ibis_module
from sawbones.audits.engine.split import Split
from sawbones.audits.engine.tallies import Cuts, bucket
from sawbones.audits.options import CannotLook
from sawbones.audits.shift.relation import error_expression
from sawbones.schema import Evidence, Finding
from sawbones.stats.distributions import mean_p, wilson

FAULT = "deployment.subgroup"
BEAM = 6
MOST_COLUMNS = 12
LEAST_ROWS = 30


@dataclass(frozen=True, slots=True)
class Segment:
    parts: tuple[tuple[str, str], ...]  # (column, value)
    rows: int
    mean: float
    variance: float

    @property
    def excess(self) -> float:
        """Lower end of what it lies above the mean by: a large segment with a clear error before a
        tiny one with a wild one.
        """
        return self.mean - 1.96 * math.sqrt(self.variance / max(1, self.rows))


def look(case: Case) -> Iterator[Finding]:
    current = list(case.splits.values())[-1]
    error, what = error_expression(case, current)
    columns = _columns(case, current)
    if not columns:
        raise CannotLook("no column to divide the rows by (--segment COLUMN,COLUMN)")
    table = current.table.select(
        e=error, **{f"s{i}": expression for i, (_, expression) in enumerate(columns)}
    )
    table = table.filter(table.e.notnull())
    row = case.session.rows(
        table.aggregate(mean=table.e.mean(), std=table.e.std(how="pop"), n=table.count())
    )[0]
    if not row["n"]:
        raise CannotLook(f"no row of {current.role} has both label and prediction")
    mean, variance, rows = float(row["mean"]), float(row["std"] or 0) ** 2, int(row["n"])
    names = [name for name, _ in columns]
    single = _grouped(case, table, names, [(i, None, "") for i in range(len(names))])
    large = [s for s in single if s.rows >= max(LEAST_ROWS, case.thresholds.segment_rows * rows)]
    beam = sorted(large, key=lambda s: -s.excess)[:BEAM]
    pairs = _grouped(
        case,
        table,
        names,
        [
            (j, names.index(s.parts[0][0]), s.parts[0][1])
            for s in beam
            for j in range(len(names))
            if names[j] != s.parts[0][0]
        ],
    )
    looked = [*single, *pairs]
    worst = _worst(case, looked, mean, variance, rows)
    if worst is not None:
        yield _finding(case, worst, mean, rows, what, len(looked), current)


def _columns(case: Case, split: Split) -> list[tuple[str, Any]]:
    ibis = ibis_module()
    # Numbers only when named: near a decision boundary every model errs more, and that is no
    # segment.
    chosen = list(case.options.segments) or case.categories[:MOST_COLUMNS]
    found = []
    for name in chosen:
        if name not in split.columns:
            raise CannotLook(f"{split.role} has no column {name!r}")
        column = split.columns[name]
        if column.kind == "number" and split.distinct(name) > 20:
            values = case.sample_of(name)
            values = values[np.isfinite(values)]
            if not len(values):
                continue
            edges = np.unique(np.quantile(values, [0.25, 0.5, 0.75]))
            texts = [
                f"≤ {edges[0]:.4g}",
                *(f"{a:.4g} … {b:.4g}" for a, b in itertools.pairwise(edges)),
                f"> {edges[-1]:.4g}",
            ]
            place = bucket(split.number(name), Cuts(edges))
            expression = ibis.cases(
                *((place == i, text) for i, text in enumerate(texts)), else_="?"
            )
            found.append((name, ibis.ifelse(split.number(name).isnull(), "missing", expression)))
        elif split.distinct(name) <= 1000 and column.kind != "empty":
            found.append((name, split.category(name).fill_null("missing")))
    return found


def _grouped(
    case: Case, table: Any, names: list[str], wanted: list[tuple[int, int | None, str]]
) -> list[Segment]:
    """Error by the values of one column, within a value of another where one is given; all of them
    in one query.
    """
    if not wanted:
        return []
    ibis = ibis_module()
    parts = []
    for number, (index, inside, value) in enumerate(wanted):
        chosen = table if inside is None else table.filter(table[f"s{inside}"] == value)
        grouped = chosen.group_by(v=chosen[f"s{index}"]).aggregate(
            n=chosen.count(), mean=chosen.e.mean(), std=chosen.e.std(how="pop")
        )
        parts.append(grouped.mutate(c=ibis.literal(number, "int32")))
    found = []
    for row in case.session.rows(parts[0] if len(parts) == 1 else ibis.union(*parts)):
        index, inside, value = wanted[row["c"]]
        own = (names[index], str(row["v"]))
        both = (own,) if inside is None else tuple(sorted([own, (names[inside], value)]))
        found.append(Segment(both, int(row["n"]), float(row["mean"]), float(row["std"] or 0) ** 2))
    return list({s.parts: s for s in found}.values())


def _worst(
    case: Case, looked: list[Segment], mean: float, variance: float, rows: int
) -> Segment | None:
    limits = case.thresholds
    found = []
    for s in looked:
        if (
            s.rows < max(LEAST_ROWS, limits.segment_rows * rows)
            or s.rows >= rows
            or s.mean - mean < limits.segment
        ):
            continue
        if (
            mean_p(s.mean, max(s.variance, variance / 4), s.rows, mean, variance, rows)
            * len(looked)
            < limits.significance
        ):
            found.append(s)
    if not found:
        return None
    best = max((s for s in found if len(s.parts) == 1), key=lambda s: s.excess, default=None)
    pair = max((s for s in found if len(s.parts) == 2), key=lambda s: s.excess, default=None)
    # A second column has to make a difference: half a segment is as bad as the whole by itself.
    if pair is not None and (best is None or pair.mean - mean >= 1.25 * (best.mean - mean)):
        return pair
    return best


def _finding(
    case: Case, s: Segment, mean: float, rows: int, what: str, looked: int, split: Split
) -> Finding:
    name = " and ".join(f"{column} = {case.shown(value)}" for column, value in s.parts)
    half = 1.96 * math.sqrt(s.variance / s.rows)
    low, high = (
        wilson(s.mean * s.rows, s.rows)
        if case.label_kind == "class"
        else (s.mean - half, s.mean + half)
    )
    return made(
        FAULT,
        "likely",
        0.9,
        f"{name}: {what} {s.mean:.3f}, {mean:.3f} over all",
        [
            Evidence(
                (
                    f"{s.rows:,} of {rows:,} rows of {split.role} "
                    f"({per_cent(s.rows / rows)}); 95 % interval {low:.3f} to {high:.3f}"
                ),
                "error",
                value=s.mean,
                expected=mean,
            ),
            Evidence(
                f"the worst of {looked:,} segments; the p-value is corrected for that", "segments"
            ),
        ],
        f"Collect more rows like these, weigh them up, or serve another model where {name}.",
        segment=dict(s.parts),
        rows=s.rows,
        error=s.mean,
        mean=mean,
        interval=[low, high],
        threshold=case.thresholds.segment,
    )

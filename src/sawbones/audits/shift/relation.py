"""How label and inputs hang together on both sides: which of P(x), P(y), P(x|y) and P(y|x) changed,
and the error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sawbones.audits.case import Case
from sawbones.audits.engine.session import ibis_module
from sawbones.audits.engine.split import Split
from sawbones.audits.engine.tallies import Tally, aligned
from sawbones.audits.options import CannotLook
from sawbones.audits.shift.moves import Move, move_of, moves, sides
from sawbones.audits.shift.signs import pipeline_signs
from sawbones.stats import distributions as d

INFORMATIVE = (
    0.03  # KS that the label's move would cause in an input, for that input to tell anything
)


@dataclass(frozen=True, slots=True)
class ErrorMove:
    before: float
    after: float
    p: float
    what: str


@dataclass(frozen=True, slots=True)
class Drift:
    """Which of the four kinds the difference is. A finding of one kind is not repeated as
    another.
    """

    covariate: tuple[Move, ...]
    label: Move | None
    label_is_consequence: bool
    concept: (
        tuple[str, float] | None
    )  # column at which the label's rate changed most, and by how much
    error: ErrorMove | None
    error_moved: bool


def drift(case: Case) -> Drift:
    if "drift" not in case.found:
        case.found["drift"] = _drift(case)
    found: Drift = case.found["drift"]
    return found


def _drift(case: Case) -> Drift:
    limits = case.thresholds
    signs = {sign.column for sign in pipeline_signs(case)}
    inputs = tuple(m for m in moves(case) if m.moved and m.column not in signs)
    label = _label_move(case)
    label_moved = (
        label is not None and label.p < limits.significance and label.effect >= limits.label_shift
    )
    error = error_move(case)
    error_moved = (
        error is not None
        and error.p < limits.significance
        and error.after - error.before >= limits.concept
    )
    by_label = _label_in_both(case) and case.label_kind == "class"
    relation = _relation(case) if _label_in_both(case) else None
    related = relation is not None and relation[1] >= limits.concept
    consequence = False
    if label_moved and by_label:
        if inputs and _given_label_same(case, inputs):
            inputs = ()  # the inputs moved because the classes did
        elif inputs and any(_rate_change(case, m.column) < limits.concept / 2 for m in inputs):
            consequence = (
                True  # at equal values of an input that moved, the label has the rate it had
            )
        elif not inputs and _label_alone_explains(case):
            related = False
        elif not inputs:
            consequence = True  # the inputs are where they were: what changed is what they mean
    concept = (
        relation
        if related and not inputs and not signs and (not label_moved or consequence)
        else None
    )
    return Drift(inputs, label if label_moved else None, consequence, concept, error, error_moved)


def _label_in_both(case: Case) -> bool:
    name = case.options.label
    return (
        name is not None
        and case.label_kind is not None
        and all(name in s.columns and s.columns[name].kind != "empty" for s in case.splits.values())
    )


def _label_move(case: Case) -> Move | None:
    return move_of(case, str(case.options.label)) if _label_in_both(case) else None


def _groups(case: Case, name: str) -> tuple[list[Any], dict[Any, tuple[Any, Any]]]:
    """(classes, class -> counts over shared bins on both sides) of one feature."""
    reference, current = sides(case)
    before, after = (
        case.tallies(reference, by_label=True)[name],
        case.tallies(current, by_label=True)[name],
    )
    bins = before.bins if name in case.numbers else aligned(before, after)[0]
    place = {b: i for i, b in enumerate(bins)}
    classes = [g for g in before.counts if g is not None and g in after.counts]
    return classes, {g: (_over(before, g, place), _over(after, g, place)) for g in classes}


def _over(tally: Tally, group: Any, place: dict[str, int]) -> Any:
    counts = np.zeros(len(place))
    for name, n in zip(tally.bins, tally.counts[group], strict=True):
        counts[place[name]] += n
    return counts


def _distance(case: Case, name: str, r: Any, c: Any) -> float:
    return d.ks(r, c) if name in case.numbers else d.total_variation(r, c)


def _given_label_same(case: Case, inputs: tuple[Move, ...]) -> bool:
    """Within each class the inputs are where they were: the class rates moved, and took the inputs
    along.
    """
    for move in inputs:
        classes, counts = _groups(case, move.column)
        for g in classes:
            r, c = counts[g]
            if min(r.sum(), c.sum()) < 30:
                continue
            distance = _distance(case, move.column, r, c)
            p = (
                d.ks_p(distance, r.sum(), c.sum())
                if move.kind == "number"
                else d.homogeneity_p(r, c)
            )
            if distance >= case.thresholds.ks / 2 and p < case.thresholds.significance:
                return False
    return True


def _label_alone_explains(case: Case) -> bool:
    """Do the inputs lie where the new class rates would put them, rather than where they were?"""
    reference, current = sides(case)
    whole_before, whole_after = case.tallies(reference), case.tallies(current)
    told = False
    for name in [*case.numbers, *case.categories]:
        classes, counts = _groups(case, name)
        if len(classes) < 2:
            continue
        mixed = np.sum([d.shares(counts[g][0]) * counts[g][1].sum() for g in classes], axis=0)
        bins = (
            whole_before[name].bins
            if name in case.numbers
            else aligned(whole_before[name], whole_after[name])[0]
        )
        place = {b: i for i, b in enumerate(bins)}
        if len(place) != len(mixed):
            continue
        before, after = (np.sum([counts[g][side] for g in classes], axis=0) for side in (0, 1))
        if _distance(case, name, before, mixed) < INFORMATIVE:
            continue
        told = True
        if _distance(case, name, mixed, after) < _distance(case, name, before, after):
            return True
    return not told


def _relation(case: Case) -> tuple[str, float] | None:
    """The feature at whose values the label's rate (or mean, in standard deviations) changed most,
    noise taken off.
    """
    found = []
    for name in [*case.numbers, *case.categories]:
        change = (
            _rate_change(case, name) if case.label_kind == "class" else _mean_change(case, name)
        )
        found.append((name, change))
    return max(found, key=lambda item: item[1], default=None)


def _rate_change(case: Case, name: str) -> float:
    classes, counts = _groups(case, name)
    if len(classes) < 2:
        return 0.0
    before, after = (np.sum([counts[g][side] for g in classes], axis=0) for side in (0, 1))
    worst = 0.0
    for g in classes if len(classes) > 2 else classes[:1]:
        worst = max(worst, _weighted_change(*(_coarse(counts[g][0], counts[g][1], before, after))))
    return worst


def _coarse(r: Any, c: Any, before: Any, after: Any, most: int = 10) -> tuple[Any, Any, Any, Any]:
    both = before + after
    place = (
        np.minimum((np.cumsum(both) - both / 2) / max(1.0, both.sum()) * most, most - 1).astype(int)
        if len(both) > most
        else np.arange(len(both))
    )
    return tuple(
        np.bincount(place, weights=x, minlength=int(place.max()) + 1) for x in (r, c, before, after)
    )  # type: ignore[return-value]


def _weighted_change(hits: Any, other_hits: Any, n: Any, m: Any) -> float:
    used = (n >= 20) & (m >= 20)
    if not used.any():
        return 0.0
    p, q = hits[used] / n[used], other_hits[used] / m[used]
    pooled = (hits[used] + other_hits[used]) / (n[used] + m[used])
    noise = np.sqrt(2 / math.pi * pooled * (1 - pooled) * (1 / n[used] + 1 / m[used]))
    weight = m[used] / m[used].sum()
    return float((weight * (np.abs(p - q) - 2 * noise)).sum())


def _mean_change(case: Case, name: str) -> float:
    reference, current = sides(case)
    key = "value tallies"
    if key not in case.found:
        case.found[key] = (
            case.tallies(reference, by_label=True),
            case.tallies(current, by_label=True),
        )
    before, after = (side[name] for side in case.found[key])
    spread = reference.columns[str(case.options.label)].std
    if name not in case.numbers or not spread:
        return 0.0
    n, m = before.total, after.total
    sums = [np.sum(list(t.sums.values()), axis=0) for t in (before, after)]
    s, t, n, m = _coarse(sums[0], sums[1], n, m)
    used = (n >= 20) & (m >= 20)
    if not used.any():
        return 0.0
    noise = np.sqrt(2 / math.pi * (1 / n[used] + 1 / m[used]))
    change = np.abs(s[used] / n[used] - t[used] / m[used]) / spread - 2 * noise
    return float((m[used] / m[used].sum() * change).sum())


def error_expression(case: Case, split: Split) -> tuple[Any, str]:
    """(error of each row as float64, what it is): wrong or right for a class, distance in the
    label's spread for a quantity.
    """
    label, prediction = case.need_label(split), case.options.prediction
    if prediction is None:
        raise CannotLook("no prediction was named (--prediction COLUMN)")
    if prediction not in split.columns:
        raise CannotLook(f"{split.role} has no column {prediction!r}")
    ibis = ibis_module()
    if case.label_kind == "quantity":
        spread = case.first.columns[label].std or 1.0
        return (
            split.number(prediction) - split.number(label)
        ).abs() / spread, f"mean error in standard deviations of {label}"
    if (
        case.first.columns[prediction].kind == "number"
        and case.first.columns[prediction].min >= 0
        and case.first.columns[prediction].max <= 1
    ):
        # A score: of the larger class where the label is 0 and 1.
        guess = (split.number(prediction) >= 0.5).cast("float64")
        wrong = guess != split.number(label)
    elif split.is_number(label) and split.is_number(prediction):
        wrong = split.number(prediction) != split.number(label)
    else:
        wrong = split.category(prediction) != split.category(label)
    return ibis.ifelse(wrong, 1.0, 0.0), "share of wrong predictions"


def error_move(case: Case) -> ErrorMove | None:
    if case.options.prediction is None or not _label_in_both(case):
        return None
    found = []
    what = ""
    for split in sides(case):
        try:
            error, what = error_expression(case, split)
        except CannotLook:
            return None
        table = split.table.select(e=error)
        row = case.session.rows(
            table.aggregate(mean=table.e.mean(), std=table.e.std(how="pop"), n=table.e.count())
        )[0]
        if not row["n"]:
            return None
        found.append((float(row["mean"]), float(row["std"] or 0.0) ** 2, float(row["n"])))
    p = d.mean_p(*found[0], *found[1])
    return ErrorMove(found[0][0], found[1][0], p, what)

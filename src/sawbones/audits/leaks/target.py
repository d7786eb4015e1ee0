"""A feature that is made from the target, or after it

## What it sees
Each feature alone against the label, from one histogram by label. A class: the AUC of the feature's
bins ranked by their rate in the training part and measured in the test part, so that neither a
U-shape nor a thousand categories can hide or feign anything; at least `auc` (0.95). A quantity: R2
of the bin means, at least `r2` (0.95). Also |correlation| of at least `correlation` (0.9), and a
small model that reaches 0.95 only with one feature and loses `importance` (0.15) without it. AUC is
the first rule: a skewed feature with AUC 0.99 may have a correlation of 0.83.

## Why it matters
The feature will not be there, or not be filled in, when a prediction is needed. The score is that
of looking up the answer.

## Looks like
A score too good for the task from the first epoch; one feature carries nearly all of the
importance.

## Example
    rows["days_to_refund"] = (rows["refunded_at"] - rows["ordered_at"]).dt.days
    features, label = rows[["price", "days_to_refund"]], rows["was_refunded"]

## Use instead
    known_at_order = ["price", "customer_age", "country"]
    features, label = rows[known_at_order], rows["was_refunded"]

## Confirm it
Train without the feature. A score that falls to what the task usually gives shows that the feature
was the answer.

## False alarms
An easy task has honest features this good; the finding shows the numbers, and only someone who
knows when the feature is measured can tell. Group and row ids are not looked at. Raise `auc` for
such a data set.

## References
Kaufman et al., "Leakage in data mining: formulation, detection, and avoidance" (2012). Kapoor and
Narayanan, "Leakage and the reproducibility crisis in machine-learning-based science" (2023), leak
L2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sawbones.audits.case import MOST_CLASSES, Case, made
from sawbones.audits.engine.split import Split
from sawbones.audits.engine.tallies import Tally
from sawbones.audits.model import drop_one
from sawbones.audits.options import CannotLook
from sawbones.audits.suspects import suspects
from sawbones.schema import Evidence, Finding
from sawbones.stats.distributions import Counts, encoded_auc, encoded_r2, ordered_auc

FAULT = "evaluation.leak-target"
LEAST_ROWS = 50
LEAST_OF_CLASS = 10


@dataclass(frozen=True, slots=True)
class Strength:
    """How well one feature alone gives the label."""

    feature: str
    value: float  # AUC or R2
    positive: Any  # the class it tells from the others, None for a quantity
    correlation: float
    tally: Tally  # of the feature by label


def look(case: Case) -> Iterator[Finding]:
    train = case.first
    case.need_label(train)
    if train.rows < LEAST_ROWS:
        raise CannotLook(
            f"{train.role} has {train.rows} rows; {LEAST_ROWS} are needed to judge a feature alone"
        )
    # Measured on other rows than fitted on; without a second split on the same ones, with few bins.
    test = next(
        (s for s in list(case.splits.values())[1:] if case.options.label in s.columns), train
    )
    strengths = _strengths(case, train, test)
    limits = case.thresholds
    rule, limit = ("AUC", limits.auc) if case.label_kind == "class" else ("R2", limits.r2)
    found = [s for s in strengths if s.value >= limit or abs(s.correlation) >= limits.correlation]
    for strength in sorted(found, key=lambda s: -max(s.value, abs(s.correlation)))[:10]:
        yield _finding(case, strength, rule, limit)
    if not found and len(case.splits) > 1:
        yield from _leaning(case, train, test, rule)


def _finding(case: Case, s: Strength, rule: str, limit: float) -> Finding:
    label = case.options.label
    against = (
        f" (class {case.shown(_plain(s.positive))} against the others)"
        if s.positive is not None
        else ""
    )
    by_rule = s.value >= limit
    evidence = [
        Evidence(
            f"{s.feature} alone: {rule} {s.value:.3f}{against}",
            "histogram by label",
            value=s.value,
            expected=limit,
        )
    ]
    if np.isfinite(s.correlation):
        evidence.append(
            Evidence(
                f"correlation of {s.feature} with {label}: {s.correlation:.3f}",
                "correlation",
                value=abs(s.correlation),
                expected=case.thresholds.correlation,
            )
        )
    shown = f"{rule} {s.value:.3f}" if by_rule else f"|correlation| {abs(s.correlation):.3f}"
    return made(
        FAULT,
        "likely",
        0.9 if by_rule else 0.75,
        f"{s.feature} alone gives {label} away: {shown}",
        evidence,
        f"Find out when {s.feature} is measured. Where that is after {label} is known, or "
        "where it is computed from it, leave "
        f"it out.",
        column=s.feature,
        score=s.value,
        rule=rule,
        threshold=limit,
        correlation=s.correlation,
        distribution=_distribution(case, s),
    )


def _leaning(case: Case, train: Split, test: Split, rule: str) -> Iterator[Finding]:
    """No feature is too good alone, but a model is, and only with one of them."""
    dropped = drop_one(case, train, test)
    if dropped is None:
        return
    name, whole, without = dropped
    if whole - without < case.thresholds.importance:
        return
    yield made(
        FAULT,
        "likely",
        0.7,
        f"A model is too good only with {name}: {rule} {whole:.3f}, {without:.3f} without it",
        [
            Evidence(
                (
                    f"boosted trees on a sample: {rule} {whole:.3f} with all features, "
                    f"{without:.3f} without {name}"
                ),
                "model",
                value=whole - without,
                expected=case.thresholds.importance,
            )
        ],
        (
            f"Find out when {name} is measured, and what it is computed from; train without "
            "it where that is after the label."
        ),
        column=name,
        score=whole,
        without=without,
        rule=rule,
        threshold=case.thresholds.importance,
    )


def _strengths(case: Case, train: Split, test: Split) -> list[Strength]:
    chosen = tuple(suspects(case, train))
    if not chosen:
        return []
    fit, held = (case.tallies(split, by_label=True, only=chosen) for split in (train, test))
    correlations = _correlations(case, train, chosen)
    found = []
    for name in fit:
        if case.label_kind == "class":
            value, positive = _best_class(
                fit[name], held[name], same=train is test, ordered=name in case.numbers
            )
        else:
            value, positive = _r2(fit[name], held[name], same=train is test), None
        found.append(
            Strength(name, value, positive, correlations.get(name, float("nan")), fit[name])
        )
    return found


def _best_class(fit: Tally, held: Tally, same: bool, ordered: bool) -> tuple[float, Any]:
    classes = sorted((g for g in fit.counts if g is not None), key=lambda g: -fit.counts[g].sum())[
        :MOST_CLASSES
    ]
    if sum(fit.counts[g].sum() >= LEAST_OF_CLASS for g in classes) < 2:
        return 0.5, None
    place = {b: i for i, b in enumerate(fit.bins)}
    best, which = 0.5, None
    for positive in classes[:1] if len(classes) == 2 else classes:
        if fit.counts[positive].sum() < LEAST_OF_CLASS or positive not in held.counts:
            continue
        p, rest = fit.counts[positive], fit.total - fit.counts[positive]
        tp, tn = (
            _placed(held, held.counts[positive], place),
            _placed(held, held.total - held.counts[positive], place),
        )
        if tp.sum() < LEAST_OF_CLASS or tn.sum() < LEAST_OF_CLASS:
            continue
        if same:
            # On the rows it was fitted on, the ranking of bins flatters itself: there the plain
            # order of the values has to do.
            value = ordered_auc(p, rest) if ordered else _shrunk(p, rest)
        else:
            value = encoded_auc(np.append(p, 0), np.append(rest, 0), tp, tn)
            if ordered:
                # With a handful of rows in a bin its rate is noise and costs AUC; the plain order
                # has nothing to fit.
                value = max(value, min(ordered_auc(p, rest), ordered_auc(tp, tn)))
        if value > best:
            best, which = value, positive
    return best, which


def _shrunk(p: Counts, rest: Counts) -> float:
    """In-sample AUC of categories, counting only those with enough rows to have a rate."""
    enough = p + rest >= 20
    return (
        encoded_auc(p[enough], rest[enough], p[enough], rest[enough]) if enough.sum() > 1 else 0.5
    )


def _placed(tally: Tally, counts: Counts, place: dict[str, int]) -> Counts:
    """Counts over another tally's bins; what it never saw goes into one bin of its own."""
    found = np.zeros(len(place) + 1)
    for name, n in zip(tally.bins, counts, strict=True):
        found[place.get(name, len(place))] += n
    return found


def _r2(fit: Tally, held: Tally, same: bool) -> float:
    place = {b: i for i, b in enumerate(fit.bins)}
    counts, sums = fit.total, np.sum(list(fit.sums.values()), axis=0)
    total = _placed(held, held.total, place)[: len(place)]
    value = _placed(held, np.sum(list(held.sums.values()), axis=0), place)[: len(place)]
    squares = _placed(held, np.sum(list(held.squares.values()), axis=0), place)[: len(place)]
    if same and (counts > 0).sum() * 10 > counts.sum():
        return 0.0
    return encoded_r2(counts, sums, total, value, squares)


def _correlations(case: Case, train: Split, chosen: tuple[str, ...]) -> dict[str, float]:
    label = str(case.options.label)
    if not train.is_number(label) or not train.columns[label].std or not case.numbers:
        return {}
    classes = case.label_kind == "class"
    if classes and train.distinct(label) > 3:
        return {}  # the number of a class is a name
    y = train.number(label)
    names = [n for n in case.numbers if n in chosen and train.columns[n].std > 0]
    if not names:
        return {}
    wanted = {f"r{i}": train.number(n).corr(y, how="pop") for i, n in enumerate(names)}
    row = case.session.rows(train.table.aggregate(**wanted))[0]
    return {n: float(row[f"r{i}"]) for i, n in enumerate(names) if row[f"r{i}"] is not None}


def _distribution(case: Case, s: Strength) -> dict[str, Any] | None:
    """The feature's histogram for the class and for the rest, for the report to draw."""
    tally = s.tally
    if s.positive is None or s.positive not in tally.counts:
        return None
    bins, sides = narrowed(
        tally.bins,
        [tally.counts[s.positive], tally.total - tally.counts[s.positive]],
        s.feature in case.numbers,
    )
    label = case.options.label
    return {
        "column": s.feature,
        "bins": bins,
        "names": [f"{label} = {_plain(s.positive)}", "others"],
        "counts": sides,
    }


def narrowed(
    bins: list[str], sides: list[Counts], ordered: bool, most: int = 32
) -> tuple[list[str], list[list[float]]]:
    """At most `most` bins for a drawing: neighbours joined, or the largest categories kept."""
    if len(bins) <= most:
        return bins, [side.tolist() for side in sides]
    if ordered:
        step = -(-len(bins) // most)
        starts = range(0, len(bins), step)
        return [bins[i] for i in starts], [
            [float(side[i : i + step].sum()) for i in starts] for side in sides
        ]
    top = np.argsort(-np.sum(sides, axis=0), kind="stable")[:most]
    return [bins[i] for i in top], [side[top].tolist() for side in sides]


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value == int(value) else value

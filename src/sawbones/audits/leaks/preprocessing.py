"""Statistics that were fitted before the split

## What it sees
Mean, spread, minimum and maximum of every numeric feature, in the training part alone and in all parts together. Fires when the
joint mean is 0 and the joint spread 1 to within `moments` (1e-5) while the training part's own are not, or when the range 0 to
1 is reached only by both together. A scaler, imputer or vocabulary given by `--fitted FILE` is compared with both.

## Why it matters
The test rows have spoken through the scaler, the vocabulary or the imputer before the model was trained. With few rows, or with
a shift between the splits, the score is better than in use.

## Looks like
Nothing in the training shows it. The training part is standardised almost, but not exactly.

## Example
    features = StandardScaler().fit_transform(all_features)
    train, test = features[:8000], features[8000:]

## Use instead
    scaler = StandardScaler().fit(all_features[:8000])
    train, test = scaler.transform(all_features[:8000]), scaler.transform(all_features[8000:])

## Confirm it
No experiment is needed: joint moments of exactly 0 and 1 do not come about by chance.

## False alarms
Both parts standardised each by its own moments have a joint mean of 0 too; the training part's own is 0 as well, and the audit
stays silent. A feature that lies between 0 and 1 by nature is only suspected, and only where both ends are reached once.

## References
Kapoor and Narayanan, "Leakage and the reproducibility crisis in machine-learning-based science" (2023), leak L1.2. scikit-learn
user guide, "Common pitfalls: data leakage during pre-processing".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from sawbones.audits.case import Case, made
from sawbones.audits.engine.split import Column, Split
from sawbones.audits.fitted import Fitted, fitted_objects, vocabulary_in
from sawbones.audits.options import CannotLook
from sawbones.schema import Evidence, Finding

FAULT = "evaluation.leak-preprocessing"
SHOWN = 6


def look(case: Case) -> Iterator[Finding]:
    train, *others = case.splits.values()
    if not others:
        raise CannotLook("one split alone has no joint statistics")
    if case.options.fitted:
        yield from _of_objects(case, train, others)
    for count in range(1, len(others) + 1):
        for some in combinations(others, count):
            found = [(n, _standardised(case, n, train, some)) for n in case.numbers]
            moments = [(n, f) for n, f in found if f is not None]
            if moments:
                yield _moments_finding(case, moments, train, some)
                return
            ranges = [n for n in case.numbers if _ranged(n, train, some)]
            if ranges:
                yield _range_finding(ranges, train, some)
                return


def joint(columns: list[Column]) -> tuple[float, float, int]:
    """(mean, spread, rows) of several parts together, from the moments of each."""
    rows = sum(c.count for c in columns)
    mean = sum(c.count * c.mean for c in columns) / max(1, rows)
    square = sum(c.count * (c.std**2 + (c.mean - mean) ** 2) for c in columns) / max(1, rows)
    return mean, math.sqrt(max(0.0, square)), rows


def _standardised(case: Case, name: str, train: Split, others: tuple[Split, ...]) -> tuple[float, float, float, float] | None:
    """(joint mean, joint spread, own mean, own spread) when only the joint ones are 0 and 1."""
    own = train.columns[name]
    columns = [own, *(s.columns[name] for s in others)]
    if not all(math.isfinite(c.mean) and math.isfinite(c.std) for c in columns):
        return None
    mean, spread, rows = joint(columns)
    near = case.thresholds.moments
    both = [spread, spread * math.sqrt(rows / (rows - 1))] if rows > 1 else [spread]
    if abs(mean) > near or all(abs(s - 1) > near for s in both):
        return None
    off = max(abs(own.mean), abs(own.std - 1))
    own_off = min(off, max(abs(own.mean), abs(own.std * math.sqrt(own.count / max(1, own.count - 1)) - 1)))
    return (mean, spread, own.mean, own.std) if own_off > 5 * near else None


def _moments_finding(case: Case, found: list[Any], train: Split, others: tuple[Split, ...]) -> Finding:
    together = " + ".join([train.role, *(s.role for s in others)])
    evidence = [
        Evidence(
            f"{name}: mean {mean:.1e} and spread {spread:.6f} over {together}, but {own_mean:.2e} and {own_spread:.6f} over "
            f"{train.role}",
            "moments",
            value=abs(mean),
            expected=abs(own_mean),
        )
        for name, (mean, spread, own_mean, own_spread) in found[:SHOWN]
    ]
    return made(
        FAULT,
        "proven",
        0.95,
        f"{_names([n for n, _ in found])} standardised by the moments of {together}",
        evidence,
        f"Fit the scaler on {train.role} alone and apply it to the rest.",
        columns=[n for n, _ in found],
        splits=[train.role, *(s.role for s in others)],
        threshold=case.thresholds.moments,
    )


def _ranged(name: str, train: Split, others: tuple[Split, ...]) -> bool:
    """Scaled to 0..1 (or -1..1) together: both ends are reached, and at least one of them not by the training part."""
    columns = [train.columns[name], *(s.columns[name] for s in others)]
    if columns[0].integer:
        return False
    low, high = min(c.min for c in columns), max(c.max for c in columns)
    if high != 1.0 or low not in (0.0, -1.0):
        return False
    return (columns[0].min > low or columns[0].max < high) and train.distinct(name) >= min(100, train.rows // 2)


def _range_finding(names: list[str], train: Split, others: tuple[Split, ...]) -> Finding:
    together = " + ".join([train.role, *(s.role for s in others)])
    sure = len(names) > 1
    evidence = [
        Evidence(
            f"{n}: exactly 0 to 1 over {together}, {train.columns[n].min:.6g} to {train.columns[n].max:.6g} over {train.role}",
            "range",
        )
        for n in names[:SHOWN]
    ]
    return made(
        FAULT,
        "likely" if sure else "suspected",
        0.8 if sure else 0.4,
        f"{_names(names)} scaled to the range of {together}",
        evidence,
        f"Fit the scaler on {train.role} alone and apply it to the rest.",
        columns=names,
        splits=[train.role, *(s.role for s in others)],
    )


def _of_objects(case: Case, train: Split, others: list[Split]) -> Iterator[Finding]:
    objects = fitted_objects(str(case.options.fitted), case.numbers)
    for fitted in objects.statistics:
        off = [found for name in fitted.values if (found := _compared(fitted, name, train, others)) is not None]
        if off:
            together = " + ".join([train.role, *(s.role for s in others)])
            evidence = [
                Evidence(
                    f"{name}: {fitted.what} {value:.8g}; {train.role} alone has {own:.8g}, {together} {whole:.8g}",
                    "fitted file",
                    value=abs(value - whole),
                    expected=abs(value - own),
                )
                for name, value, own, whole in off[:SHOWN]
            ]
            yield made(
                FAULT,
                "proven",
                0.95,
                f"{case.options.fitted} was fitted on {together}, not on {train.role} alone",
                evidence,
                f"Fit it again on {train.role} alone: scaler.fit({train.role}).",
                columns=[o[0] for o in off],
            )
    if objects.vocabulary:
        yield from _of_vocabulary(case, objects.vocabulary, train, others)


def _compared(fitted: Fitted, name: str, train: Split, others: list[Split]) -> tuple[str, float, float, float] | None:
    """(column, fitted value, training value, joint value) when the fitted one is that of all parts together."""
    if name not in train.columns or not all(name in s.columns for s in others):
        return None
    columns = [train.columns[name], *(s.columns[name] for s in others)]
    mean, spread, _ = joint(columns)
    own, whole = {
        "mean": (columns[0].mean, mean),
        "spread": (columns[0].std, spread),
        "minimum": (columns[0].min, min(c.min for c in columns)),
        "maximum": (columns[0].max, max(c.max for c in columns)),
    }[fitted.what]
    value = fitted.values[name]
    scale = max(abs(whole), spread, 1e-12)
    near = abs(value - whole) / scale < 1e-4
    return (
        (name, value, own, whole)
        if near and abs(value - own) > 10 * abs(value - whole) and abs(own - whole) / scale > 1e-7
        else None
    )


def _of_vocabulary(case: Case, words: set[str], train: Split, others: list[Split]) -> Iterator[Finding]:
    text = case.options.text or next(iter(train.of_kind("text")), None)
    if text is None:
        raise CannotLook("a vocabulary was given, and no text column to compare it with (--text COLUMN)")
    own = vocabulary_in(case, train, text, words)
    for other in others:
        if text not in other.columns:
            continue
        only = sorted(vocabulary_in(case, other, text, words) - own)
        if len(only) < max(2, 0.001 * len(words)):
            continue
        yield made(
            FAULT,
            "proven",
            0.95,
            f"The vocabulary holds {len(only):,} words that only {other.role} has",
            [
                Evidence(
                    f"{len(only):,} of {len(words):,} words occur in {other.role} and never in {train.role}",
                    "vocabulary",
                    value=len(only),
                    expected=0,
                ),
                Evidence(f"among them: {', '.join(case.shown(w) for w in only[:10])}", "vocabulary"),
            ],
            f"Build the vocabulary from {train.role} alone.",
            column=text,
            words=[case.shown(w) for w in only[:50]],
        )


def _names(names: list[str]) -> str:
    more = f" and {len(names) - 3} more are" if len(names) > 3 else " is" if len(names) == 1 else " are"
    return ", ".join(names[:3]) + more

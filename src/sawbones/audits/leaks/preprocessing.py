"""Features standardised, or scaled to a range, by the statistics of all parts; fitted objects from
a file compared with both.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from sawbones.audits.case import Case, made
from sawbones.audits.engine.split import Column, Split
from sawbones.audits.fitted import Fitted, fitted_objects, vocabulary_in
from sawbones.audits.options import CannotLook
from sawbones.schema import Evidence, Finding
from sawbones.stats.moments import Moments, joint, standardised_together

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


def _moments(column: Column) -> Moments:
    return Moments(column.count, column.mean, column.std)


def _standardised(
    case: Case, name: str, train: Split, others: tuple[Split, ...]
) -> tuple[float, float, float, float] | None:
    """(joint mean, joint spread, own mean, own spread) when only the joint ones are 0 and 1."""
    own = _moments(train.columns[name])
    both = standardised_together(
        own, [_moments(s.columns[name]) for s in others], case.thresholds.moments
    )
    return (both.mean, both.spread, own.mean, own.spread) if both is not None else None


def _moments_finding(
    case: Case, found: list[Any], train: Split, others: tuple[Split, ...]
) -> Finding:
    together = " + ".join([train.role, *(s.role for s in others)])
    evidence = [
        Evidence(
            f"{name}: mean {mean:.1e} and spread {spread:.6f} over {together}, but "
            f"{own_mean:.2e} and {own_spread:.6f} over "
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
    """Scaled to 0..1 (or -1..1) together: both ends are reached, and at least one of them not by
    the training part.
    """
    columns = [train.columns[name], *(s.columns[name] for s in others)]
    if columns[0].integer:
        return False
    low, high = min(c.min for c in columns), max(c.max for c in columns)
    if high != 1.0 or low not in (0.0, -1.0):
        return False
    return (columns[0].min > low or columns[0].max < high) and train.distinct(name) >= min(
        100, train.rows // 2
    )


def _range_finding(names: list[str], train: Split, others: tuple[Split, ...]) -> Finding:
    together = " + ".join([train.role, *(s.role for s in others)])
    sure = len(names) > 1
    evidence = [
        Evidence(
            (
                f"{n}: exactly 0 to 1 over {together}, {train.columns[n].min:.6g} to "
                f"{train.columns[n].max:.6g} over {train.role}"
            ),
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
        off = [
            found
            for name in fitted.values
            if (found := _compared(fitted, name, train, others)) is not None
        ]
        if off:
            together = " + ".join([train.role, *(s.role for s in others)])
            evidence = [
                Evidence(
                    (
                        f"{name}: {fitted.what} {value:.8g}; {train.role} alone has "
                        f"{own:.8g}, {together} {whole:.8g}"
                    ),
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


def _compared(
    fitted: Fitted, name: str, train: Split, others: list[Split]
) -> tuple[str, float, float, float] | None:
    """(column, fitted value, training value, joint value) when the fitted one is that of all parts
    together.
    """
    if name not in train.columns or not all(name in s.columns for s in others):
        return None
    columns = [train.columns[name], *(s.columns[name] for s in others)]
    together = joint([_moments(c) for c in columns])
    own, whole = {
        "mean": (columns[0].mean, together.mean),
        "spread": (columns[0].std, together.spread),
        "minimum": (columns[0].min, min(c.min for c in columns)),
        "maximum": (columns[0].max, max(c.max for c in columns)),
    }[fitted.what]
    value = fitted.values[name]
    scale = max(abs(whole), together.spread, 1e-12)
    near = abs(value - whole) / scale < 1e-4
    return (
        (name, value, own, whole)
        if near and abs(value - own) > 10 * abs(value - whole) and abs(own - whole) / scale > 1e-7
        else None
    )


def _of_vocabulary(
    case: Case, words: set[str], train: Split, others: list[Split]
) -> Iterator[Finding]:
    text = case.options.text or next(iter(train.of_kind("text")), None)
    if text is None:
        raise CannotLook(
            "a vocabulary was given, and no text column to compare it with (--text COLUMN)"
        )
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
                    (
                        f"{len(only):,} of {len(words):,} words occur in {other.role} and "
                        f"never in {train.role}"
                    ),
                    "vocabulary",
                    value=len(only),
                    expected=0,
                ),
                Evidence(
                    f"among them: {', '.join(case.shown(w) for w in only[:10])}", "vocabulary"
                ),
            ],
            f"Build the vocabulary from {train.role} alone.",
            column=text,
            words=[case.shown(w) for w in only[:50]],
        )


def _names(names: list[str]) -> str:
    more = (
        f" and {len(names) - 3} more are"
        if len(names) > 3
        else " is"
        if len(names) == 1
        else " are"
    )
    return ", ".join(names[:3]) + more

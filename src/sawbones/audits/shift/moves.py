"""What moved between reference and current: every feature, measured once for all audits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sawbones.audits.case import Case
from sawbones.audits.engine.split import Split
from sawbones.audits.engine.tallies import (
    MISSING,
    Tally,
    aligned,
    cuts_of,
    tally_categories,
    tally_numbers,
)
from sawbones.audits.leaks.target import narrowed
from sawbones.stats import distributions as d

LEAST_ROWS = 30
PSI_BINS = 20


@dataclass(frozen=True, slots=True)
class Move:
    """One column's two distributions, compared. `p` is corrected for the number of columns."""

    column: str
    kind: str  # number or category
    ks: float
    psi: float
    js: float
    p: float
    missing: tuple[float, float]
    missing_p: float
    new: tuple[str, ...] = ()
    new_share: float = 0.0
    gone: tuple[str, ...] = ()
    gone_share: float = 0.0
    moved: bool = False

    @property
    def effect(self) -> float:
        return max(self.ks, self.js if self.kind == "category" else 0.0)


def sides(case: Case) -> tuple[Split, Split]:
    reference, current = case.splits.values()
    return reference, current


def moves(case: Case) -> list[Move]:
    """All features, the one that moved most first."""
    if "moves" not in case.found:
        reference, current = sides(case)
        before, after = case.tallies(reference), case.tallies(current)
        raw = [compared(name, before[name], after[name], name in case.numbers) for name in before]
        case.found["moves"] = judged(case, raw, min(reference.rows, current.rows))
        _draw(case, before, after)
    found: list[Move] = case.found["moves"]
    return found


def judged(case: Case, raw: list[Move], rows: int) -> list[Move]:
    limits = case.thresholds
    corrected = d.adjusted([m.p for m in raw])
    missing = d.adjusted([m.missing_p for m in raw])
    found = []
    for move, p, missing_p in zip(raw, corrected, missing, strict=True):
        large = move.psi >= limits.psi or (
            move.ks >= limits.ks
            if move.kind == "number"
            else move.js >= limits.js or move.ks >= limits.ks
        )
        moved = large and p < limits.significance and rows >= LEAST_ROWS
        found.append(replace(move, p=p, missing_p=missing_p, moved=moved))
    return sorted(found, key=lambda m: -m.effect)


def compared(name: str, before: Tally, after: Tally, ordered: bool) -> Move:
    bins, r, c = (before.bins, before.total, after.total) if ordered else aligned(before, after)
    known = np.array([b != MISSING for b in bins])
    lost = (float(r[~known].sum()), float(c[~known].sum()))
    n_all, m_all = float(r.sum()), float(c.sum())
    missing = (lost[0] / max(1.0, n_all), lost[1] / max(1.0, m_all))
    missing_p = d.proportion_p(lost[0], n_all, lost[1], m_all)
    names = [b for b, k in zip(bins, known, strict=True) if k]
    r, c = r[known], c[known]
    n, m = float(r.sum()), float(c.sum())
    if ordered:
        distance = d.ks(r, c)
        coarse = merged(r, c)
        # Few distinct values: the Kolmogorov tail is far too wide there, the chi-squared test is
        # not.
        p = d.ks_p(distance, n, m) if len(r) > 10 else d.homogeneity_p(r, c)
        return Move(name, "number", distance, d.psi(*coarse), d.js(*coarse), p, missing, missing_p)
    fresh = [
        (b, y)
        for b, x, y in zip(names, r, c, strict=True)
        if x == 0 and _telling(y, m, n, len(names))
    ]
    gone = [
        (b, x)
        for b, x, y in zip(names, r, c, strict=True)
        if y == 0 and _telling(x, n, m, len(names))
    ]
    return Move(
        name,
        "category",
        d.total_variation(r, c) if d.homogeneity_p(r, c) < 1 else 0.0,
        d.psi(r, c),
        d.js(r, c),
        d.homogeneity_p(r, c),
        missing,
        missing_p,
        tuple(b for b, _ in fresh),
        sum(y for _, y in fresh) / max(1.0, m),
        tuple(b for b, _ in gone),
        sum(x for _, x in gone) / max(1.0, n),
    )


def _telling(count: float, own: float, other: float, categories: int) -> bool:
    """Would all rows of a category fall on one side by chance, in any of so many? Once in ten
    thousand, or more rarely.
    """
    return bool(
        count > 0
        and own > 0
        and count * np.log(own / (own + other)) + np.log(categories) < np.log(1e-4)
    )


def merged(r: Any, c: Any, most: int = PSI_BINS) -> tuple[Any, Any]:
    """Neighbouring bins joined until each holds its share of both together: PSI of near-empty bins
    is noise.
    """
    both = d.shares(r) + d.shares(c)
    total = both.sum()
    if total <= 0 or len(r) <= most:
        return r, c
    place = np.minimum((np.cumsum(both) - both / 2) / total * most, most - 1).astype(int)
    return np.bincount(place, weights=r, minlength=most), np.bincount(
        place, weights=c, minlength=most
    )


def _draw(case: Case, before: dict[str, Tally], after: dict[str, Tally]) -> None:
    for move in case.found["moves"][:24]:
        ordered = move.kind == "number"
        tally = before[move.column]
        bins, r, c = (
            (tally.bins, tally.total, after[move.column].total)
            if ordered
            else aligned(tally, after[move.column])
        )
        shown, counts = narrowed(list(bins), [r, c], ordered)
        if case.options.redact and not ordered:
            shown = [f"value {i + 1}" for i in range(len(shown))]
        case.drawings.append(
            {
                "column": move.column,
                "bins": shown,
                "names": ["reference", "current"],
                "counts": counts,
                "moved": move.moved,
                "ks": move.ks,
                "psi": move.psi,
                "js": move.js,
            }
        )


def move_of(case: Case, name: str) -> Move:
    """One further column (label or prediction) compared in the same way."""
    reference, current = sides(case)
    if reference.columns[name].kind == "number":
        cuts = {name: cuts_of(reference.sample[name])}
        before, after = tally_numbers(reference, cuts)[name], tally_numbers(current, cuts)[name]
        return judged(
            case, [compared(name, before, after, True)], min(reference.rows, current.rows)
        )[0]
    before, after = (
        tally_categories(reference, [name])[name],
        tally_categories(current, [name])[name],
    )
    return judged(case, [compared(name, before, after, False)], min(reference.rows, current.rows))[
        0
    ]


def described(case: Case, move: Move) -> str:
    limits = case.thresholds
    if move.kind == "number":
        return (
            f"{move.column}: KS {move.ks:.3f} (from {limits.ks:g}), PSI {move.psi:.3f} "
            f"(from {limits.psi:g}), JS {move.js:.3f}, "
            f"corrected p {move.p:.1g}"
        )
    return (
        f"{move.column}: {100 * move.ks:.1f} % of the rows changed category, PSI "
        f"{move.psi:.3f} (from {limits.psi:g}), "
        f"JS {move.js:.3f} (from {limits.js:g}), corrected p {move.p:.1g}"
    )

"""Readings: one piece of evidence with its null."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sawbones.evidence.limit import Limit
from sawbones.schema import Evidence
from sawbones.stats.distributions import wilson

CLEAR, WEAK, ABSENT = "clear", "weak", "absent"

# The distance of 1.0 to the next number of a dtype: what one operation may be off by.
_ROUNDING = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "bfloat16": 2.0**-7,
    "float16": 2.0**-10,
}


def tolerance(dtype: str, scale: float = 1.0, terms: int = 1) -> float:
    """What rounding alone may leave where zero is expected: sums of `terms` numbers of the size
    `scale`, each off by one unit in the last place, errors of random sign. Integers: none.
    """
    return _ROUNDING.get(dtype, 0.0) * abs(scale) * math.sqrt(max(1, terms))


def exact(
    text: str,
    value: float,
    *,
    expected: float = 0.0,
    within: float = 0.0,
    signal: str = "",
    steps: Sequence[int] = (),
) -> Evidence:
    """It must be `expected` and is not. `within` is the rounding of the dtype: see tolerance()."""
    off = abs(value - expected) if not math.isnan(value) else math.inf
    strength = CLEAR if off > within else ABSENT
    return Evidence(text, signal, tuple(steps), value, expected, "exact", strength)


def counted(
    text: str,
    hits: float,
    total: float,
    limit: Limit,
    *,
    signal: str = "",
    steps: Sequence[int] = (),
    expected: float = 0.0,
) -> Evidence:
    """`hits` of `total`, a share that reaches the limit. The interval of the share stands beside
    it (Wilson, 95 %).
    """
    share = hits / total if total else math.nan
    interval = wilson(hits, total)
    return Evidence(
        text,
        signal,
        tuple(steps),
        share,
        expected,
        "counted",
        strength(share, limit),
        (round(interval[0], 4), round(interval[1], 4)),
        int(total),
    )


def compared(
    text: str,
    value: float,
    limit: Limit,
    *,
    below: bool = False,
    against: float | None = None,
    expected: float | None = None,
    signal: str = "",
    steps: Sequence[int] = (),
) -> Evidence:
    """A quantity that reaches the limit (or, with `below`, stays under it). With `against`, the
    ratio to that other quantity is what is compared.
    """
    measured = value if against is None else value / against if against else math.inf
    return Evidence(
        text,
        signal,
        tuple(steps),
        value,
        against if expected is None else expected,
        "compared",
        strength(measured, limit, below=below),
    )


def refused(
    text: str,
    *,
    value: float | None = None,
    expected: float | None = None,
    signal: str = "crash",
    steps: Sequence[int] = (),
) -> Evidence:
    """An operation that Python or torch refused: the caller matched the exception's class and the
    operator.
    """
    return Evidence(text, signal, tuple(steps), value, expected, "refused", CLEAR)


def context(
    text: str,
    *,
    signal: str = "",
    steps: Sequence[int] = (),
    value: float | None = None,
    expected: float | None = None,
) -> Evidence:
    """Worth showing, decides nothing."""
    return Evidence(text, signal, tuple(steps), value, expected)


def strength(measured: float, limit: Limit, *, below: bool = False) -> str:
    if below:
        clear, weak = limit.kept_by(measured), limit.suspected_below(measured)
    else:
        clear, weak = limit.reached_by(measured), limit.suspected_by(measured)
    return CLEAR if clear else WEAK if weak else ABSENT

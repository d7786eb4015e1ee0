"""A limit: the number that a measurement is compared with, its unit, and why it is this number."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

# While somebody collects: limit -> the values that were compared with it.
_seen: ContextVar[dict[Limit, list[float]] | None] = ContextVar("seen", default=None)


@dataclass(frozen=True, eq=False)
class Limit:
    """`value` is where a reading is clear; from `weak` on, short of it, it is a suspicion.

    `because` is a derivation, or the operating point: what healthy and broken runs showed.
    """

    value: float
    unit: str
    because: str
    weak: float | None = None

    def reached_by(self, measured: float | None) -> bool:
        """At or above the limit. A value that was not measured, or is NaN, reaches nothing."""
        return self._met(measured, self.value, upwards=True)

    def passed_by(self, measured: float | None) -> bool:
        """Strictly above the limit."""
        return self._met(measured, math.nextafter(self.value, math.inf), upwards=True)

    def kept_by(self, measured: float | None) -> bool:
        """At or below the limit."""
        return self._met(measured, self.value, upwards=False)

    def undercut_by(self, measured: float | None) -> bool:
        """Strictly below the limit."""
        return self._met(measured, math.nextafter(self.value, -math.inf), upwards=False)

    def suspected_by(self, measured: float | None) -> bool:
        """At or above the weak limit, where there is one."""
        return self._met(measured, self._weak, upwards=True)

    def suspected_below(self, measured: float | None) -> bool:
        """At or below the weak limit, where there is one."""
        return self._met(measured, self._weak, upwards=False)

    @property
    def _weak(self) -> float:
        return self.value if self.weak is None else self.weak

    def _met(self, measured: float | None, level: float, *, upwards: bool) -> bool:
        if measured is None or math.isnan(measured):
            return False
        seen = _seen.get()
        if seen is not None:
            seen[self].append(float(measured))
        return measured >= level if upwards else measured <= level

    def times(self, size: float) -> float:
        """The limit in the unit of `size`, for texts and bounds: 0.4 of a first loss of 2.3."""
        return self.value * size

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)


@contextmanager
def collecting() -> Iterator[dict[Limit, list[float]]]:
    """What every limit was compared with meanwhile: the material of the operating points."""
    seen: dict[Limit, list[float]] = defaultdict(list)
    token = _seen.set(seen)
    try:
        yield seen
    finally:
        _seen.reset(token)

"""A curve that somebody else has logged: a name, steps and values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Curve:
    name: str
    points: tuple[tuple[int, float], ...]  # (step, value), by step

    @property
    def steps(self) -> list[int]:
        return [step for step, _ in self.points]

    @property
    def values(self) -> list[float]:
        return [value for _, value in self.points]


@dataclass(frozen=True, slots=True)
class Log:
    """What a tracker has kept of one run."""

    source: str  # the file or folder it was read from
    curves: tuple[Curve, ...] = field(default_factory=tuple)
    notes: tuple[str, ...] = ()  # what was left out of it, and why

    @property
    def names(self) -> list[str]:
        return [curve.name for curve in self.curves]

    def named(self, name: str) -> Curve | None:
        return next((curve for curve in self.curves if curve.name == name), None)


def curve(name: str, points: Iterable[tuple[int, float]]) -> Curve:
    """A step that was logged twice counts with its last value, as trackers show it."""
    last = dict(points)
    return Curve(name, tuple(sorted(last.items())))

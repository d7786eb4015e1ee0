"""Where the thread that trains stood when it was looked at."""

from __future__ import annotations

from dataclasses import dataclass

from sawbones.schema.site import Site


@dataclass(frozen=True, slots=True)
class StandingLine:
    site: Site
    seconds: float  # up to each look that found the thread there


@dataclass(frozen=True, slots=True)
class StorageWait:
    """A call of the system that the thread slept in, by the line that made it."""

    call: str  # write, fsync, openat, ...
    target: str  # path of the file or pipe, as far as the call names one
    seconds: float
    steps: int
    site: Site | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """A few hundred looks a minute, from the first step on."""

    looks: int = 0
    sees_calls: bool = False  # the system says in which of its calls a thread sleeps
    first: int = 0  # the step from which on `stalled` is complete
    lines: tuple[StandingLine, ...] = ()
    waits: tuple[StorageWait, ...] = ()
    stalled: tuple[tuple[int, float], ...] = ()  # step, milliseconds asleep in such calls

"""Lines of the user's source by what is written there."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sawbones.schema import Run, Site
from sawbones.trace.locate import locate

_SAME_NUMBER = 1e-6  # of its size


def marked_lines(
    run: Run, kind: str, value: int | None = None, names: Sequence[str] = ()
) -> tuple[Site, ...]:
    """Lines of one kind; with a value, those whose number is within 2 of it."""
    rows = [r for r in run.source_lines if r.kind == kind and (not names or r.name in names)]
    if value is not None:
        near = [(abs(r.value - value), r) for r in rows if r.value is not None]
        rows = [r for off, r in sorted(near, key=lambda item: item[0]) if off <= 2]
    return locate(*rows)


def data_lines(
    run: Run, kind: str, value: int | None = None, names: Sequence[str] = ()
) -> tuple[Site, ...]:
    """Marked lines that are about data, not about the inside of a model."""
    return outside_of_models(run, marked_lines(run, kind, value, names))


def dealing_lines(run: Run) -> tuple[Site, ...]:
    """Where rows are dealt out to parts: the shuffle before a split in the same function, the
    splits, then other shuffles.
    """
    parts, shuffles = data_lines(run, "split")[:2], calls_of(run, ("order",))
    right_before = [
        max(before, key=lambda s: s.line)
        for part in parts
        if (before := [s for s in shuffles if _is_before(s, part)])
    ]
    return locate(*right_before[:1], *parts, *shuffles[:2])


def _is_before(site: Site, other: Site) -> bool:
    same = (site.file, site.function) == (other.file, other.function)
    return same and site.line < other.line


def outside_of_models(run: Run, sites: Sequence[Site]) -> tuple[Site, ...]:
    """Those that lie in no function which a deep step saw running inside of a module. One that calls
    the model is not inside of it, although the operators of a Sequential have no line further in.
    """
    callers = {(e.site.file, e.site.function) for e in run.of_kind("forward") if e.site is not None}
    inside = {
        (op.site.file, op.site.function)
        for deep in run.deep[:2]
        for op in deep.ops
        if op.module and op.site is not None
    } - callers
    return tuple(s for s in sites if (s.file, s.function) not in inside or s.function == "<module>")


def lines_in(sites: Sequence[Site], where: tuple[str, int, int] | None) -> tuple[Site, ...]:
    """Those within (file, first line, last line)."""
    return tuple(
        s
        for s in sites
        if where is not None and s.file == where[0] and where[1] <= s.line <= where[2]
    )


def calls_of(run: Run, kinds: Sequence[str], names: Sequence[str] = ()) -> tuple[Site, ...]:
    """Where one of `names` is called, from the recorded calls of the given kinds."""
    return tuple(
        call.site
        for call in run.source_calls
        if call.kind in kinds and (not names or call.function in names)
    )


def numbers_equal(run: Run, *values: float, words: Sequence[str] | None = None) -> tuple[Site, ...]:
    """Where one of these numbers is written and given a name. With words, a name that holds one of
    them; else the only place where it is written at all.
    """
    wanted = [v for v in values if math.isfinite(v) and v != 0]
    rows = [
        r
        for r in run.source_numbers
        if any(math.isclose(r.value, v, rel_tol=_SAME_NUMBER) for v in wanted)
    ]
    named = [r for r in rows if words is None or any(word in r.name.lower() for word in words)]
    if words is None:
        return tuple(r.site for r in named if r.name)
    return tuple(r.site for r in named or (rows if len(rows) == 1 else ()))

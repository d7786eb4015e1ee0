"""Readings of where training data comes from: the loader, its lines, the user's code that makes,
cuts and pads samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sawbones.schema import Batch, Loader, Run, Site
from sawbones.trace.locate import locate


def training_batches(run: Run) -> list[Batch]:
    return [b for b in run.batches if b.phase == "train"]


def training_source(run: Run) -> str | None:
    """The loader (or the model's own inputs) that most training batches came from."""
    counts = Counter(b.source for b in training_batches(run))
    return counts.most_common(1)[0][0] if counts else None


def training_loader(run: Run) -> Loader | None:
    source = training_source(run)
    return next((loader for loader in run.loaders if loader.source == source), None)


def loader_sites(run: Run) -> tuple[Site, ...]:
    """Where the training loader is built, and the user's collate function."""
    loader = training_loader(run)
    return locate(loader.site, loader.collate_site) if loader else ()


def feeding_sites(run: Run) -> tuple[Site, ...]:
    """Where the loop fetches batches, or, without a loader, calls the model."""
    fetched = [e.site for e in run.of_kind("batch")[:3]]
    called = [e.site for e in run.of_kind("forward") if e.phase == "train" and e.data.get("top")][
        :3
    ]
    return locate(*fetched, *called)


def marked_lines(
    run: Run, kind: str, value: int | None = None, names: Sequence[str] = ()
) -> tuple[Site, ...]:
    """Lines of the user's source of one kind; with a value, those whose number is within 2 of
    it.
    """
    rows = [r for r in run.source_lines if r.kind == kind and (not names or r.name in names)]
    if value is not None:
        near = [(abs(r.value - value), r) for r in rows if r.value is not None]
        rows = [r for off, r in sorted(near, key=lambda item: item[0]) if off <= 2]
    return locate(*rows)


def defaults(run: Run, value: int) -> tuple[Site, ...]:
    """Lines that give this number for what a table does not hold."""
    return locate(*(r for r in run.source_lines if r.kind == "default" and r.value == value))


def outside_of_models(run: Run, sites: Sequence[Site]) -> tuple[Site, ...]:
    """Those that lie in no function which a deep step saw running inside of a module."""
    inside = {
        (op.site.file, op.site.function)
        for deep in run.deep[:2]
        for op in deep.ops
        if op.module and op.site is not None
    }
    return tuple(s for s in sites if (s.file, s.function) not in inside or s.function == "<module>")


def data_function(run: Run, role: str) -> tuple[str, int, int] | None:
    """(file, first line, last line) of the user's function that reads, makes or seeds samples."""
    found: tuple[str, int, int] | None = getattr(run.data_code, role)
    return found


def lines_in(sites: Sequence[Site], where: tuple[str, int, int] | None) -> tuple[Site, ...]:
    return tuple(
        s
        for s in sites
        if where is not None and s.file == where[0] and where[1] <= s.line <= where[2]
    )


def sample_rows(run: Run) -> Mapping[str, Any] | None:
    found = (run.facts.get("samples") or {}).get("rows")
    return found if isinstance(found, Mapping) else None


def warned_sites(run: Run) -> tuple[Site, ...]:
    """Lines at which NumPy warned of a value that is no number."""
    words = ("divide by zero", "invalid value", "overflow encountered")
    return locate(
        *(e for e in run.of_kind("warning") if any(w in str(e.data.get("text", "")) for w in words))
    )

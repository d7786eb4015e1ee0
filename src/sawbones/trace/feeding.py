"""Where a run gets its data and hands them to the model: loaders, collate functions, loops,
calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence, Set

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
    return locate(training_loader(run))


def built_loaders(run: Run, *sources: str) -> tuple[Site, ...]:
    """Where the loaders are built that batches with these sources come from."""
    by_source = {loader.source: loader.site for loader in run.loaders}
    return locate(*map(by_source.get, sources))


def model_calls(
    run: Run, phase: str = "train", steps: Collection[int] | None = None
) -> tuple[Site, ...]:
    """Lines from which the model is called, the first three."""
    calls = (e for e in run.of_kind("forward") if e.phase == phase)
    return locate(*(e for e in calls if steps is None or e.step in steps))[:3]


def feeding_sites(run: Run) -> tuple[Site, ...]:
    """Where the loop fetches batches, or, without a loader, calls the model."""
    return locate(*run.of_kind("batch")[:3], *model_calls(run))


def framework_sites(run: Run) -> set[Site]:
    """Lines from which a library runs the whole loop: backward and optimizer step both seem to
    happen there.
    """
    return _where_all_happen(run, {"backward", "step"})


def own_lines_first(run: Run, where: Sequence[Site]) -> tuple[Site, ...]:
    """The call that hands the whole loop to a library, batches included, says nothing of the data
    or the model that it was given: it comes last.
    """
    calls = {(s.file, s.line) for s in _where_all_happen(run, {"batch", "backward", "step"})}
    return tuple(sorted(where, key=lambda site: (site.file, site.line) in calls))


def _where_all_happen(run: Run, wanted: Set[str]) -> set[Site]:
    kinds: dict[Site, set[str]] = {}
    for event in run.events:
        if event.site is not None and event.kind in wanted:
            kinds.setdefault(event.site, set()).add(event.kind)
    return {site for site, seen in kinds.items() if seen == wanted}


def data_sites(run: Run, shape: tuple[int, ...], names: frozenset[str]) -> tuple[Site, ...]:
    """Lines that prepare batches: where integers of about this shape were made inside of the user's
    collate function, that function, and other lines that made such.

    Lengths differ from batch to batch, and a loader may be a batch ahead of the step, so the very
    tensor need not be there. A worker's lines are not seen: then the function stands alone.
    """
    collating = locate(*(loader.collate_site for loader in run.loaders))
    functions = {(site.file, site.function) for site in collating}
    made: list[Site] = []
    for deep in run.deep[1:4]:
        for op in deep.ops:
            out = op.outputs[0] if op.outputs else None
            if out is None or op.site is None or op.module or op.name not in names:
                continue
            if not out.dtype.startswith("int") or len(out.shape) != len(shape):
                continue
            if any(a == b for a, b in zip(out.shape, shape, strict=True)):
                made.append(op.site)
    inside = [site for site in made if (site.file, site.function) in functions]
    return locate(*inside, *collating, *made)


def defaults(run: Run, value: int) -> tuple[Site, ...]:
    """Lines that give this number for what a table does not hold."""
    return locate(*(r for r in run.source_lines if r.kind == "default" and r.value == value))


def warned_sites(run: Run) -> tuple[Site, ...]:
    """Lines at which NumPy warned of a value that is no number."""
    words = ("divide by zero", "invalid value", "overflow encountered")
    return locate(
        *(e for e in run.of_kind("warning") if any(w in str(e.data.get("text", "")) for w in words))
    )


def inside_collate(run: Run, sites: Sequence[Site], reach: int = 15) -> list[Site]:
    """Those within `reach` lines of where the collate function begins."""
    return [
        site
        for site in sites
        if any(
            begin.file == site.file and begin.line <= site.line <= begin.line + reach
            for begin in loader_sites(run)[1:]
        )
    ]

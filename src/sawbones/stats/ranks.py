"""Readings over the ranks of one run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sawbones.schema import NOT_MEASURED, Event, Run, Site
from sawbones.schema.ranks import GIVEN, Apart
from sawbones.stats.splits import told_apart
from sawbones.trace.feeding import built_loaders
from sawbones.trace.locate import locate


def everyone(run: Run) -> tuple[Run, ...]:
    return (run, *run.ranks)


def trained_prints(run: Run) -> list[tuple[int, ...]]:
    trained, _ = told_apart(run)
    return [b.fingerprints for b in trained if b.fingerprints]


def training_sites(run: Run) -> tuple[Site, ...]:
    """Where the training data of this rank are chosen: the loader and the loop over it, or the
    lines that order and cut them.
    """
    trained, _ = told_apart(run)
    for batch in trained:
        built = built_loaders(run, batch.source)
        if built:
            number = int(batch.source.removeprefix("loader:"))
            # A stream has no sampler: who gets what is decided where it is read.
            streams = [x.stream_site for x in run.loaders if x.index == number]
            return locate(
                *streams,
                *built,
                *[e for e in run.of_kind("batch") if e.data.get("loader") == number][:1],
            )
    fed = [e.site for e in run.of_kind("batch", "forward") if e.site is not None][:1]
    ordered = [call.site for call in run.source_calls if call.kind == "order"]
    return locate(*ordered[:1], *fed, *ordered[1:])


def is_sharded(run: Run) -> bool:
    """Each rank holds a part of every tensor: what they hold must differ."""
    if run.sharded:
        return True
    return any(
        "FSDP" in str(e.data.get("cls")) or "Fully" in str(e.data.get("cls"))
        for e in run.of_kind("parallel")
    )


def tables(run: Run, statistic: str) -> dict[int, npt.NDArray[np.float64]]:
    """step -> one value per tensor; NaN where nothing was measured."""
    table = run.statistics.get(statistic)
    if table is None:
        return {}
    found: dict[int, npt.NDArray[np.float64]] = {}
    for row, step in zip(table, run.tensor_steps, strict=False):
        values = np.asarray(row, np.float64)
        found.setdefault(int(step), np.where(values <= NOT_MEASURED, np.nan, values))
    return found


def first_difference(
    a: Run, b: Run, statistic: str, tolerance: float
) -> tuple[int, int, float, float] | None:
    """(step of both, tensor of a, value on a, value on b) of the first measured value that is not
    the same.
    """
    alone = _alone(a, b)
    if alone is None:
        return None
    (steps_a, tensors_a), (steps_b, tensors_b) = alone
    ours = {step - steps_a: values[tensors_a:] for step, values in tables(a, statistic).items()}
    theirs = {step - steps_b: values[tensors_b:] for step, values in tables(b, statistic).items()}
    for step in sorted(s for s in set(ours) & set(theirs) if s >= 0):
        x, y = ours[step], theirs[step]
        size = min(len(x), len(y))
        x, y = x[:size], y[:size]
        differ = np.abs(x - y) > tolerance * (np.abs(x) + np.abs(y)) + 1e-12
        if np.any(differ):
            worst = int(
                np.nanargmax(np.where(differ, np.abs(x - y) / (np.abs(x) + np.abs(y) + 1e-12), -1))
            )
            return step, worst + tensors_a, float(x[worst]), float(y[worst])
    return None


def _alone(a: Run, b: Run) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """(steps, tensors) that each rank has for itself before both go on together; None where they
    cannot be laid side by side.

    One rank may train something first that the others wait for, with an optimizer that only it has.
    """
    if a.num_steps == b.num_steps or len(a.optimizers) == len(b.optimizers):
        return (0, 0), (0, 0)
    steps, size = min(a.num_steps, b.num_steps), min(len(a.tensors), len(b.tensors))
    names = [
        [t.name for t in sorted(run.tensors, key=lambda t: t.index)][len(run.tensors) - size :]
        for run in (a, b)
    ]
    shapes = [
        [t.shape for t in sorted(run.tensors, key=lambda t: t.index)][len(run.tensors) - size :]
        for run in (a, b)
    ]
    if names[0] != names[1] or shapes[0] != shapes[1] or not size or not steps:
        return None
    return (a.num_steps - steps, len(a.tensors) - size), (
        b.num_steps - steps,
        len(b.tensors) - size,
    )


def wrapped(run: Run) -> Event | None:
    return next(
        (e for e in run.of_kind("parallel") if e.data.get("cls") == "DistributedDataParallel"), None
    )


def started_apart(a: Run, b: Run, step: int) -> bool:
    """Parameters differ after this step by more than the step itself can have moved them."""
    sizes, moves = (
        (tables(a, "param_l2"), tables(b, "param_l2")),
        (tables(a, "update_l2"), tables(b, "update_l2")),
    )
    if any(step not in table for table in (*sizes, *moves)):
        return False
    (x, y), (u, v) = (t[step] for t in sizes), (t[step] for t in moves)
    size = min(map(len, (x, y, u, v)))
    return bool(np.any(np.abs(x[:size] - y[:size]) > 1.1 * (u[:size] + v[:size]) + 1e-6))


def apart(run: Run, kind: str) -> Apart | None:
    """Where ranks were seen apart while they trained, by fingerprints: on any rank, whatever
    folders are at hand.
    """
    rows = [r.agreement.found.get(kind) for r in everyone(run) if r.agreement]
    drifted = [row for row in rows if row is not None and row.drifted]
    return min(drifted, key=lambda row: row.first, default=None)


def answers_apart(run: Run) -> Apart | None:
    """Answers of models with the same weights to the same batch; None where something else that
    they depend on differs, too.
    """
    row = apart(run, "answers")
    given = row is not None and any(t.name.startswith(GIVEN) for t in row.tensors)
    return None if given else row


def buffers_apart(run: Run) -> Apart | None:
    """Buffers that nothing brings together: apart at two looks or more, not broadcast by DDP, nor
    sent by a line of the script.
    """
    row = apart(run, "buffers")
    wrapper = wrapped(run)
    if (
        row is None
        or row.looks < 2
        or (wrapper is not None and wrapper.data.get("broadcast_buffers", True))
    ):
        return None
    return None if any(r.agreement and r.agreement.buffers_sent for r in everyone(run)) else row


def written_alone(a: Run, b: Run) -> tuple[Site, ...]:
    """Lines that write parameters outside of an optimizer's step on one of two ranks only, with the
    lines that called them.
    """
    ours, theirs = (
        dict.fromkeys(write.sites for write in r.writes if write.step > 0) for r in (a, b)
    )
    alone = ours.keys() ^ theirs.keys()
    return locate(*(site for sites in (*ours, *theirs) if sites in alone for site in sites))


def rates_apart(a: Run, b: Run, step: int) -> tuple[Event, Event] | None:
    """The first calls of one scheduler, one per rank, that leave other learning rates behind, no
    later than this step.
    """
    for ours, theirs in zip(a.of_kind("schedule"), b.of_kind("schedule"), strict=False):
        if (
            ours.step > step
            or ours.data.get("scheduler") != theirs.data.get("scheduler")
            or ours.step != theirs.step
        ):
            return None
        if ours.data.get("lr_after") != theirs.data.get("lr_after"):
            return ours, theirs
    return None

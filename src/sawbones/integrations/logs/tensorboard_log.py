"""TensorBoard: the scalars of the event files of one run, by TensorBoard's own reader.

Every start of a script writes a file of its own. Where a later one begins again at a step that was
logged already, it replaces what came from there on: the run that went on is judged, and not the
stretch that was given up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sawbones.integrations.logs import LogNotReadable, Tell
from sawbones.schema.curve import Log, curve

EVENTS = "*tfevents*"
_BEGUN = re.compile(r"tfevents\.(\d+)")
_TOLD_EVERY = 20_000  # values

Points = list[tuple[int, float, float]]  # step, value, when it was written


def read(places: Sequence[Path], tell: Tell) -> Log:
    try:
        from tensorboard.backend.event_processing import event_file_loader
    except ImportError:
        raise LogNotReadable("tensorboard is missing: pip install tensorboard") from None
    files = _files(places)
    found: dict[str, Points] = {}
    again: list[int] = []  # steps at which a restart went on
    read_so_far = 0
    for number, file in enumerate(files, start=1):
        own: dict[str, Points] = {}
        for tag, point in _values(event_file_loader.EventFileLoader(str(file)), own, found):
            own.setdefault(tag, []).append(point)
            read_so_far += 1
            if read_so_far % _TOLD_EVERY == 0:
                tell(f"{read_so_far:,} values, file {number} of {len(files)}")
        for tag, points in own.items():
            before = found.get(tag, [])
            found[tag] = _joined(before, points)
            if before and len(found[tag]) < len(before) + len(points):
                again.append(points[0][0])
    curves = [
        curve(tag, [(step, value) for step, value, _ in points])
        for tag, points in sorted(found.items())
        if points
    ]
    notes: tuple[str, ...] = ()
    if again:
        notes = (
            f"{len(files)} event files: the run was begun again at step {min(again)}; what was "
            "logged before from there on is left out",
        )
    source = files[0] if len(files) == 1 and places[0].is_file() else files[0].parent
    return Log(str(source), tuple(curves), notes)


def _files(places: Sequence[Path]) -> list[Path]:
    """In the order in which they were begun."""
    found: list[Path] = []
    for place in places:
        if place.is_file():
            found.append(place)
        else:
            found += place.glob(EVENTS)
    if not found and len(places) == 1:
        found = list(places[0].rglob(EVENTS))
    runs = sorted({str(file.parent) for file in found})
    if not found:
        raise LogNotReadable(f"{places[0]} holds no event files")
    if len(runs) > 1:
        more = f" and {len(runs) - 5} more" if len(runs) > 5 else ""
        raise LogNotReadable(f"one run at a time. There are runs in: {', '.join(runs[:5])}{more}")
    return sorted(set(found), key=lambda file: (_begun(file), file.name))


def _begun(file: Path) -> int:
    named = _BEGUN.search(file.name)
    return int(named[1]) if named else 0


def _values(
    loader: Any, own: dict[str, Points], before: dict[str, Points]
) -> Iterator[tuple[str, tuple[int, float, float]]]:
    for event in loader.Load():
        if event.HasField("session_log"):
            # what SummaryWriter(purge_step=) writes: from here on all of it comes again
            if event.session_log.status == event.session_log.START and event.step > 0:
                for kept in (own, before):
                    for tag, points in kept.items():
                        kept[tag] = [point for point in points if point[0] < event.step]
            continue
        if event.HasField("summary"):
            for value in event.summary.value:
                number = _scalar(value)
                if number is not None:
                    yield value.tag, (int(event.step), number, float(event.wall_time))


def _joined(before: Points, after: Points) -> Points:
    """Files that were written at the same time are those of several writers: all of it counts."""
    if not before or not after or after[0][2] < before[-1][2]:
        return sorted([*before, *after], key=lambda point: point[2])
    first = after[0][0]
    return [*(point for point in before if point[0] < first), *after]


def _scalar(value: Any) -> float | None:
    """Newer writers keep scalars as tensors; texts and histograms are none."""
    from tensorboard.util.tensor_util import make_ndarray

    if value.HasField("simple_value"):
        return float(value.simple_value)
    if not value.HasField("tensor"):
        return None
    try:
        array = make_ndarray(value.tensor)
        return float(array.item()) if array.size == 1 and array.dtype.kind in "fiu" else None
    except (TypeError, ValueError):
        return None

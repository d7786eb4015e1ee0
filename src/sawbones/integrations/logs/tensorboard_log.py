"""TensorBoard: the scalars of the event files in one folder, by TensorBoard's own reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sawbones.integrations.logs import LogNotReadable
from sawbones.schema.curve import Log, curve

EVENTS = "*tfevents*"


def read(path: Path) -> Log:
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError:
        raise LogNotReadable("tensorboard is missing: pip install tensorboard") from None
    if path.is_dir() and not any(path.glob(EVENTS)):
        runs = sorted({str(file.parent) for file in path.rglob(EVENTS)})
        if len(runs) != 1:
            listed = f" There are runs in: {', '.join(runs[:5])}" if runs else ""
            raise LogNotReadable(f"{path} holds no event files.{listed}")
        path = Path(runs[0])
    accumulator: Any = EventAccumulator(str(path), size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    tags = accumulator.Tags()
    curves = [
        curve(tag, [(int(e.step), float(e.value)) for e in accumulator.Scalars(tag)])
        for tag in tags.get("scalars", ())
    ]
    for tag in tags.get("tensors", ()):
        points = [(int(e.step), _scalar(e.tensor_proto)) for e in accumulator.Tensors(tag)]
        known = [(step, value) for step, value in points if value is not None]
        curves += [curve(tag, known)] if known else []
    return Log(str(path), tuple(curves))


def _scalar(proto: Any) -> float | None:
    """Newer writers keep scalars as tensors; texts and histograms are none."""
    from tensorboard.util.tensor_util import make_ndarray

    try:
        array = make_ndarray(proto)
        return float(array) if array.size == 1 and array.dtype.kind in "fiu" else None
    except (TypeError, ValueError):
        return None

"""Frames and series of pandas: their columns, dtypes and how their rows are labelled."""

from __future__ import annotations

from typing import Any

from sawbones.schema.crash import Bound

TABLES = ("DataFrame", "Series")
MOST_COLUMNS = 24
MOST_LABELS = 6
MOST_TEXT = 40


def table(value: Any, name: str, home: str) -> Bound:
    index = value.index
    rows = len(index)
    labels = [str(label)[:MOST_TEXT] for label in index[:MOST_LABELS]]
    settings: dict[str, Any] = {
        "labels": labels,
        "label_kind": str(index.dtype),
        "by_position": labels == [str(number) for number in range(len(labels))]
        and str(index.dtype).startswith("int")
        and (not rows or (int(index.min()) == 0 and int(index.max()) == rows - 1)),
    }
    if name == "Series":
        return Bound("table", name, home, (rows,), str(value.dtype), length=rows, settings=settings)
    columns = [str(column)[:MOST_TEXT] for column in value.columns[:MOST_COLUMNS]]
    settings["dtypes"] = [str(dtype) for dtype in value.dtypes[:MOST_COLUMNS]]
    shape = (rows, int(value.shape[1]))
    return Bound("table", name, home, shape, length=rows, keys=tuple(columns), settings=settings)

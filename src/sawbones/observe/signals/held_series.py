"""Arrays in the user's hands that are scaled as a whole, and from which both the training rows and
the evaluated ones come.

The model is often given windows of a series, so that its rows are not those of the array: single
steps are looked up in it. An array scaled over the training part alone is not scaled exactly as a
whole; one that holds the training part alone does not hold the evaluated steps.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_HELD = 4
MAX_VALUES = 1 << 20
EXACT = 1e-5
_LEAST_ROWS = 50
_LEAST_NEW = 20

Rows = npt.NDArray[Any]


class HeldSeries:
    def __init__(self) -> None:
        self._held: dict[tuple[str, int, int], dict[str, Any]] = {}

    def add(self, name: str, array: Rows, small: list[str]) -> None:
        """An array that the script holds; `small` are the names of arrays with one value for each
        of its columns.
        """
        rows = np.asarray(array, np.float64).reshape(len(array), -1)
        key = (name, *rows.shape)
        if key in self._held:
            self._held[key]["small"] |= set(small)
            return
        if (
            len(self._held) >= MAX_HELD
            or rows.size > MAX_VALUES
            or len(rows) < _LEAST_ROWS
            or not np.all(np.isfinite(rows))
        ):
            return
        scaled = _scaled(rows)
        if scaled is not None:
            self._held[key] = {"rows": rows.astype(np.float32), "small": set(small), **scaled}

    def record(self, train: Rows, held_out: Rows) -> dict[str, Any] | None:
        for (_, count, width), series in self._held.items():
            if train[0].size % width or held_out[0].size % width:
                continue
            known, own, new = (_steps(part, width) for part in (series["rows"], train, held_out))
            new -= own
            whole = (
                len(known) >= 0.9 * count and len(own | new) >= 0.5 * count
            )  # nearly all steps differ, and most are used
            if (
                not whole
                or len(new) < max(_LEAST_NEW, 0.02 * count)
                or len((own | new) & known) < 0.99 * len(own | new)
            ):
                continue
            used = np.frombuffer(b"".join(own), np.float32).reshape(-1, width).astype(np.float64)
            away = (
                off_standard(used)
                if series["kind"] == "standardised"
                else np.maximum(used.min(0), 1.0 - used.max(0))
            )
            sign = {
                "kind": series["kind"],
                "columns": width,
                "of": width,
                "off": series["off"],
                "own_off": float(away.max()),
            }
            small = sorted(series["small"])
            assumed = (
                [{"cls": "", "names": small, "rows": count, "assumed": True}]
                if len(small) >= 2
                else []
            )
            if sign["own_off"] > 1e-4:
                return {"train_rows": len(own), "rows": count, "signs": [sign], "holders": assumed}
        return None


def _scaled(rows: Rows) -> dict[str, Any] | None:
    off = float(off_standard(rows).max())
    if off <= EXACT:
        return {"kind": "standardised", "off": off}
    edge = float(np.maximum(np.abs(rows.min(0)), np.abs(rows.max(0) - 1.0)).max())
    return {"kind": "ranged", "off": edge} if edge <= 1e-6 else None


def off_standard(rows: Rows, axes: tuple[int, ...] = (0,)) -> Rows:
    """How far mean and spread over these axes are from 0 and 1, whichever way the spread was
    divided.
    """
    mean, biased = rows.mean(axes), rows.std(axes)
    count = math.prod(rows.shape[axis] for axis in axes)
    unbiased = biased * math.sqrt(count / (count - 1)) if count > 1 else biased * math.nan
    found: Rows = np.maximum(
        np.abs(mean), np.minimum(np.abs(biased - 1), np.abs(unbiased - 1))
    ).reshape(-1)
    return found


def _steps(rows: Rows, width: int) -> set[bytes]:
    plain = np.ascontiguousarray(rows, np.float32).reshape(-1, width)
    return {step.tobytes() for step in plain}

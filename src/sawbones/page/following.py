"""The steps of a run folder as arrays that grow: each poll reads what is new, by row number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sawbones.schema import NOT_MEASURED
from sawbones.store.opening import connect

Floats = npt.NDArray[np.float64]
ROWS_AT_ONCE = 100_000
POINTS = 1000  # of a whole curve on the page
# What is read of a step. The page draws the second group.
READ = (
    *("step", "optimizer", "loss", "grad_norm", "lr", "update_norm", "param_norm"),
    *("step_ms", "data_wait_ms", "memory_mb", "scale", "skipped"),
)
CURVES = {
    "loss": "Loss",
    "grad_norm": "Gradient norm",
    "update_ratio": "Update ratio",
    "lr": "Learning rate",
    "steps_per_s": "Steps per second",
    "data_wait_ms": "Waiting for data, ms",
    "memory_mb": "Memory, MB",
    "scale": "Loss scale",
    "skipped": "Skipped steps so far",
}
# Here a value that is not finite is news; elsewhere it means that there was nothing to measure.
_CAN_BREAK = ("loss", "grad_norm")
_KEPT = ("step", "optimizer", *CURVES)
_WHOLE = {"step": np.int64, "optimizer": np.int32}


class Followed:
    """One run. `rows` is the cursor: how many steps have been read."""

    def __init__(self, folder: Path, rank: int = 0) -> None:
        self.folder = folder
        self.rank = rank
        self.rows = 0
        self.has_ended = False
        self._skipped = 0.0
        self._room = 0
        self._table: dict[str, npt.NDArray[Any]] = {}

    def poll(self) -> bool:
        """Reads at most ROWS_AT_ONCE new steps; True where there may be more at once."""
        columns = ", ".join(f'"{name}"' for name in READ)
        with connect(self.folder, self.rank) as db:
            found = db.execute(
                f"SELECT {columns} FROM raw_steps WHERE row >= ? ORDER BY row LIMIT ?",
                (self.rows, ROWS_AT_ONCE),
            ).fetchall()
            ended = db.execute("SELECT 1 FROM records WHERE kind = 'ending' LIMIT 1").fetchone()
        if found:
            table = np.array(found, np.float64)  # NULL becomes NaN
            self._append({name: table[:, i] for i, name in enumerate(READ)})
        self.has_ended = ended is not None and len(found) < ROWS_AT_ONCE
        return len(found) == ROWS_AT_ONCE

    def _append(self, columns: dict[str, Floats]) -> None:
        count = len(columns["step"])
        skipped = self._skipped + np.cumsum(np.nan_to_num(columns["skipped"]))
        self._skipped = float(skipped[-1])
        with np.errstate(all="ignore"):
            ratio = columns["update_norm"] / columns["param_norm"]
            speed = 1000.0 / columns["step_ms"]
        unknown = (columns["update_norm"] == NOT_MEASURED) | (columns["param_norm"] <= 0)
        ratio[unknown] = np.nan
        speed[~np.isfinite(speed)] = np.nan
        made = {**columns, "update_ratio": ratio, "steps_per_s": speed, "skipped": skipped}
        self._grow(self.rows + count)
        for name in _KEPT:
            self._table[name][self.rows : self.rows + count] = made[name]
        self.rows += count

    def _grow(self, rows: int) -> None:
        if rows <= self._room:
            return
        self._room = max(1024, 2 * rows if rows < 1_000_000 else rows + 1_000_000)
        for name in _KEPT:
            larger = np.zeros(self._room, _WHOLE.get(name, np.float32))
            if name in self._table:
                larger[: self.rows] = self._table[name][: self.rows]
            self._table[name] = larger

    @property
    def last_step(self) -> int:
        return int(self._table["step"][self.rows - 1]) if self.rows else -1

    def rows_between(self, first: float, last: float) -> tuple[int, int]:
        """The rows of a range of steps, with a neighbour on either side."""
        steps = self._table["step"][: self.rows] if self.rows else np.zeros(0)
        begin, end = np.searchsorted(steps, [first, last], side="left")
        return max(0, int(begin) - 1), min(self.rows, int(end) + 1)

    def points(
        self, begin: int, end: int, most: int = POINTS, names: Sequence[str] = tuple(CURVES)
    ) -> dict[str, Any]:
        """curve -> {x, y, broken}: of each stretch the lowest and the highest value, in order. A
        second optimizer has curves of its own: `loss#1`.
        """
        found: dict[str, Any] = {}
        if end <= begin:
            return found
        steps, owners = self._table["step"][begin:end], self._table["optimizer"][begin:end]
        for owner in np.unique(owners).tolist():
            own = owners == owner
            for name in names:
                if name == "skipped" and not self._skipped:
                    continue
                values = self._table[name][begin:end]
                # Marks for "nothing to measure" are negative; a loss alone may truly be.
                there = own if name == "loss" else own & ~(values < 0)
                drawn = _thinned(steps[there], values[there], most, name in _CAN_BREAK)
                if drawn["x"] or drawn["broken"]:
                    found[f"{name}#{owner}" if owner > 0 else name] = drawn
        return found


def _thinned(
    steps: npt.NDArray[Any], values: npt.NDArray[Any], most: int, can_break: bool
) -> dict[str, Any]:
    finite = np.isfinite(values)
    broken = steps[~finite] if can_break else steps[:0]
    kept = np.flatnonzero(finite)
    if len(kept) > most:
        size = -(-len(kept) // (most // 2))
        whole = len(kept) // size * size
        blocks = values[kept[:whole]].reshape(-1, size)
        starts = np.arange(0, whole, size)
        chosen = [starts + blocks.argmin(axis=1), starts + blocks.argmax(axis=1)]
        if whole < len(kept):
            rest = values[kept[whole:]]
            chosen.append(np.array([whole + rest.argmin(), whole + rest.argmax()]))
        ends = np.array([0, len(kept) - 1])
        kept = kept[np.unique(np.concatenate([*chosen, ends]))]
    marks = broken[np.unique(np.linspace(0, len(broken) - 1, min(len(broken), 60)).astype(int))]
    return {
        "x": steps[kept].tolist(),
        "y": [float(f"{value:.5g}") for value in values[kept].tolist()],
        "broken": marks.tolist() if len(broken) else [],
        "num_broken": len(broken),
    }

"""What was fitted to the data before it reached the model: statistics in the user's hands, and the
rows they were taken from.

Rows of numbers that the model is given are kept, each once, apart for training and evaluation.
Looked for in the variables of the user's frames: an estimator of scikit-learn that counts the rows
it was fitted to, and a mean with a spread that are those of a whole array that is held as well. A
generator of data that standardises what it returns leaves neither behind.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sawbones.observe.signals.held_series import HeldSeries, off_standard
from sawbones.observe.sites import is_user_file
from sawbones.observe.variables import variables_of

_MAX_VALUES = 1 << 21  # of the rows kept, of each phase
_MAX_WIDTH = 4096
_MAX_ARRAY = 1 << 22
_MAX_VISITED = 3000
_MAX_DEPTH = 7  # a scaler in a pipeline in a column transformer
_MAX_LOOKS = 10
_MAX_FOUND = 32
_LEAST_ROWS = 50
NEAR, APART = (
    1e-5,
    5e-5,
)  # distance of the moments of a standardised column from 0 and 1, and of one that is not

Rows = npt.NDArray[np.float64]


class FittedLog:
    def __init__(self) -> None:
        self._rows: dict[str, dict[bytes, npt.NDArray[Any]]] = {"train": {}, "eval": {}}
        self._shape: tuple[int, ...] | None = None
        self._full = False
        self._looks = 0
        self._estimators: dict[int, dict[str, Any]] = {}
        self._own: dict[tuple[str, str, int], dict[str, Any]] = {}
        self._series = HeldSeries()

    def saw(self, found: Sequence[tuple[str, torch.Tensor]], phase: str) -> None:
        """A top-level model call began with these tensors."""
        known = self._rows.get(phase)
        dense = (t for _, t in found if t.layout is torch.strided)
        given = next((t for t in dense if t.is_floating_point() and t.dim() >= 2), None)
        if self._full or known is None or given is None:
            return
        if (
            given.device.type != "cpu"
            or given.requires_grad
            or torch._C._functorch.is_functorch_wrapped_tensor(given)
        ):
            return
        shape = tuple(given.shape[1:])
        if self._shape is None:
            self._shape = shape
        width = int(np.prod(shape))
        if (
            shape != self._shape
            or not 0 < width <= _MAX_WIDTH
            or given.dtype not in (torch.float32, torch.float64)
        ):
            self._full = True  # rows of several shapes, or too wide: nothing is told
            return
        for row in given.detach().contiguous().numpy():
            known.setdefault(row.tobytes(), row.copy())
        self._full = len(known) * width > _MAX_VALUES

    def look(self, frame: types.FrameType | None) -> None:
        """Walks the user's frames from here outwards."""
        self._looks += 1
        if self._looks > _MAX_LOOKS:
            return
        visited: set[int] = set()
        arrays: list[tuple[str, Rows]] = []
        while frame is not None:
            if is_user_file(frame.f_code.co_filename):
                for scope in (variables_of(frame), frame.f_globals):
                    for name, value in list(scope.items()):
                        if not name.startswith("__"):
                            self._visit(name, value, visited, arrays, 0)
            frame = frame.f_back
        self._compare(arrays)

    def _visit(
        self, root: str, value: Any, visited: set[int], arrays: list[tuple[str, Rows]], depth: int
    ) -> None:
        if id(value) in visited or len(visited) > _MAX_VISITED or depth > _MAX_DEPTH:
            return
        if isinstance(
            value, (types.ModuleType, types.FunctionType, type, str, bytes, torch.nn.Module)
        ):
            return
        visited.add(id(value))
        numbers = as_numbers(value)
        if numbers is not None:
            if len(arrays) < 4 * _MAX_FOUND:
                arrays.append((root, numbers))
            return
        if type(value).__module__.split(".")[0] == "sklearn":
            self._take_estimator(root, value)
        for held in _held(value):
            self._visit(root, held, visited, arrays, depth + 1)

    def _take_estimator(self, root: str, value: Any) -> None:
        for name in ("n_samples_seen_", "n_samples_"):
            rows = vars(value).get(name)
            if rows is not None and len(self._estimators) < _MAX_FOUND:
                entry = {"cls": type(value).__name__, "names": [root], "rows": int(np.max(rows))}
                self._estimators[id(value)] = entry
                return

    def _compare(self, arrays: Sequence[tuple[str, Rows]]) -> None:
        """A mean and a spread among the small arrays that are those of a whole large one."""
        whole = [(n, a) for n, a in arrays if a.ndim >= 2 and len(a) >= _LEAST_ROWS][:_MAX_FOUND]
        small = [(n, a.reshape(-1)) for n, a in arrays if a.size <= _MAX_WIDTH]
        for name, rows in arrays:
            if rows.ndim and len(rows) >= _LEAST_ROWS:
                width = rows[0].size
                self._series.add(
                    name,
                    rows,
                    [n for n, a in small if a.size == width and not np.all(np.isin(a, (0.0, 1.0)))][
                        :64
                    ],
                )
        for _, rows in whole:
            for axes in _groupings(rows.ndim):
                mean, spread = rows.mean(axes).reshape(-1), rows.std(axes).reshape(-1)
                unbiased = rows.std(axes, ddof=1).reshape(-1)
                if (
                    len(self._own) >= _MAX_FOUND
                    or not np.all(np.isfinite(spread))
                    or _is_standard(mean, spread)
                ):
                    continue
                same = [(n, a) for n, a in small if a.shape == mean.shape]
                tolerance = 1e-5 * (np.abs(spread) + np.abs(mean)) + 1e-12
                means = [n for n, a in same if np.all(np.abs(a - mean) <= tolerance)]
                spreads = [
                    n
                    for n, a in same
                    if any(np.all(np.abs(a - s) <= tolerance) for s in (spread, unbiased))
                ]
                for first, second in zip(means, spreads, strict=False):
                    entry = {
                        "cls": "",
                        "names": list(dict.fromkeys((first, second))),
                        "rows": len(rows),
                    }
                    self._own[(first, second, len(rows))] = entry

    def record(self) -> dict[str, Any] | None:
        train, held = self._rows["train"], self._rows["eval"]
        others = [row for key, row in held.items() if key not in train]
        if self._full or len(train) < _LEAST_ROWS or len(others) < 5:
            return None
        own = np.stack(list(train.values())).astype(np.float64)
        both = np.concatenate([own, np.stack(others).astype(np.float64)])
        found: dict[str, Any] = {"train_rows": len(own), "rows": len(both)}
        found["holders"] = [*self._estimators.values(), *self._own.values()]
        signs = [s for axes in _groupings(own.ndim) if (s := _sign(own, both, axes)) is not None]
        found["signs"] = signs
        if any(h["rows"] == len(both) for h in found["holders"]) and signs:
            return found
        series = self._series.record(own, np.stack(others))
        if series is not None:
            return {**series, "holders": [*found["holders"], *series["holders"]]}
        return found if signs else None


def _sign(own: Rows, both: Rows, axes: tuple[int, ...]) -> dict[str, Any] | None:
    """Columns that are standardised, centred or between 0 and 1 over all rows together and not over
    those of training.
    """
    spread = both.std(axes)
    live = np.reshape(spread > 1e-9, -1)
    if not live.any() or not np.all(np.isfinite(both)):
        return None
    off, own_off = off_standard(both, axes)[live], off_standard(own, axes)[live]
    standard, own_standard = off <= NEAR, own_off <= APART
    if standard.any() and not own_standard.any():
        worst = int(np.flatnonzero(standard)[np.argmax(own_off[standard])])
        return {
            "kind": "standardised",
            "columns": int(standard.sum()),
            "of": len(off),
            "off": float(off[standard].max()),
            "own_off": float(own_off[worst]),
        }
    if axes != (0,):
        return None
    shift = (np.abs(both.mean(0)) / np.maximum(spread, 1e-9)).reshape(-1)[live]
    own_shift = (np.abs(own.mean(0)) / np.maximum(spread, 1e-9)).reshape(-1)[live]
    if np.all(shift <= NEAR) and np.all(own_shift > APART):
        away = float(own_shift.max())
        return {
            "kind": "centred",
            "columns": len(shift),
            "of": len(shift),
            "off": float(shift.max()),
            "own_off": away,
        }
    low, high = (
        np.abs(f(both, 0) - edge).reshape(-1)[live] for f, edge in ((np.min, 0.0), (np.max, 1.0))
    )
    own_edge = np.maximum(own.min(0), 1.0 - own.max(0)).reshape(-1)[live]
    if np.all(np.maximum(low, high) <= 1e-6) and np.any(own_edge > 1e-4):
        count = int((own_edge > 1e-4).sum())
        return {
            "kind": "ranged",
            "columns": count,
            "of": len(low),
            "off": float(low.max()),
            "own_off": float(own_edge.max()),
        }
    return None


def _is_standard(mean: Rows, spread: Rows) -> bool:
    return bool(np.all(np.abs(mean) <= 1e-3) and np.all(np.abs(spread - 1) <= 1e-3))


def _groupings(ndim: int) -> list[tuple[int, ...]]:
    """Axes over which statistics are commonly taken: rows; all but features, at the end or in
    front; everything.
    """
    every = tuple(range(ndim))
    return list(dict.fromkeys([(0,), every[:-1], (0, *every[2:]), every]))


def as_numbers(value: Any) -> Rows | None:
    """A number, an array, a tensor or a table of numbers as an array; None for what is none of
    these.
    """
    if isinstance(value, torch.Tensor):
        if type(value) not in (torch.Tensor, torch.nn.Parameter):
            return None  # a part of a sharded one has no array of its own
        plain = value.detach()
        if (
            plain.device.type != "cpu"
            or plain.layout is not torch.strided
            or not plain.dtype.is_floating_point
        ):
            return None
        return plain.double().numpy() if 0 < plain.numel() <= _MAX_ARRAY else None
    if isinstance(value, float):
        return np.array([value])
    if type(value).__module__.split(".")[0] == "pandas" and hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if isinstance(value, (np.ndarray, np.floating)):
        array = np.asarray(value)
        if array.dtype.kind == "f" and 0 < array.size <= _MAX_ARRAY:
            return np.atleast_1d(array.astype(np.float64))
    return None


def _held(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from list(value.values())[:64] if len(value) <= 64 else ()
    elif isinstance(value, (list, tuple)):
        yield from value if len(value) <= 64 else ()
    else:
        yield from list(getattr(value, "__dict__", {}).values())[:64]

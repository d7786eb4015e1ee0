"""Moments in the user's hands: two tables of one series in time, cut at one moment or dealt out row
by row.

Looked for in the variables of the user's frames: tables and series of pandas and arrays of NumPy
that hold dates. Of two that share no moment it is told how evenly both together are spaced, and how
often one follows the other in time.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sawbones.observe.sites import is_user_file
from sawbones.observe.variables import parts_of, variables_of
from sawbones.schema.held import HeldTimes

_LEAST_ROWS = 30
_MAX_ROWS = 1 << 20
_MAX_SERIES = 16
_MAX_VISITED = 1000
_MAX_DEPTH = 3

Moments = npt.NDArray[np.int64]


def held_times(frame: types.FrameType | None) -> tuple[HeldTimes, ...]:
    """Pairs of series from here outwards."""
    found: dict[tuple[str, bytes], tuple[str, Moments]] = {}
    visited: set[int] = set()
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            for scope in (variables_of(frame), frame.f_globals):
                for name, value in list(scope.items()):
                    if not name.startswith("__"):
                        _visit(name, value, visited, found, 0)
        frame = frame.f_back
    series: dict[str, list[tuple[str, Moments]]] = {}
    for (column, _), entry in found.items():
        series.setdefault(column, []).append(entry)
    return tuple(
        pair
        for column, entries in series.items()
        for (a, ours), (b, theirs) in combinations(entries, 2)
        if (pair := _compared(column, (a, b), ours, theirs)) is not None
    )


def _visit(
    root: str,
    value: Any,
    visited: set[int],
    found: dict[tuple[str, bytes], tuple[str, Moments]],
    depth: int,
) -> None:
    if (
        id(value) in visited
        or len(visited) > _MAX_VISITED
        or depth > _MAX_DEPTH
        or len(found) >= _MAX_SERIES
    ):
        return
    if isinstance(
        value,
        (
            types.ModuleType,
            types.FunctionType,
            type,
            str,
            bytes,
            int,
            float,
            torch.Tensor,
            torch.nn.Module,
        ),
    ):
        return
    visited.add(id(value))
    if type(value).__module__.split(".")[0] in ("pandas", "numpy"):
        for column, moments in _moments(value):
            if len(found) < _MAX_SERIES and _LEAST_ROWS <= len(moments) <= _MAX_ROWS:
                found.setdefault((column, moments.tobytes()), (root, moments))
        return
    for held in parts_of(value):
        _visit(root, held, visited, found, depth + 1)


def _moments(value: Any) -> Iterator[tuple[str, Moments]]:
    """(column, one moment per row): of the index if that holds dates, else of every column that
    does.
    """
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "M" and value.ndim == 1:
            yield "", _whole(value)
        return
    index = getattr(value, "index", None)
    if getattr(getattr(index, "dtype", None), "kind", "") == "M":
        yield "index", _whole(index)
    elif hasattr(value, "columns"):
        for column in list(value.columns)[:64]:
            one = value[column]
            if getattr(getattr(one, "dtype", None), "kind", "") == "M":
                yield str(column), _whole(one)
    elif getattr(getattr(value, "dtype", None), "kind", "") == "M":
        yield str(getattr(value, "name", "") or ""), _whole(value)


def _whole(dates: Any) -> Moments:
    """Nanoseconds; dates with a zone are those of UTC."""
    if getattr(getattr(dates, "dtype", None), "tz", None) is not None:
        zoned = dates.dt if hasattr(dates, "dt") else dates
        dates = (
            zoned.tz_convert("UTC").tz_localize(None)
            if zoned is dates
            else zoned.tz_convert("UTC").dt.tz_localize(None)
        )
    return np.asarray(dates).astype("datetime64[ns]").astype(np.int64)


def _compared(
    column: str, names: tuple[str, str], ours: Moments, theirs: Moments
) -> HeldTimes | None:
    both = np.concatenate([ours, theirs])
    order = np.argsort(both, kind="stable")
    gaps = np.diff(both[order])
    if np.any(gaps <= 0) or np.iinfo(np.int64).min in (
        ours.min(),
        theirs.min(),
    ):  # a moment twice, or none at all
        return None
    usual = float(np.median(gaps))
    even = (gaps <= 4 * gaps.min()) | (np.abs(gaps - usual) <= 0.15 * usual)
    first = order < len(ours)
    return HeldTimes(
        column,
        names,
        (len(ours), len(theirs)),
        float(np.mean(even)),
        int(np.sum(first[1:] != first[:-1])),
        2.0 * len(ours) * len(theirs) / len(both),
        (_second(ours.min()), _second(theirs.min())),
        (_second(ours.max()), _second(theirs.max())),
    )


def _second(moment: np.int64) -> str:
    return str(moment.astype("datetime64[ns]").astype("datetime64[s]"))

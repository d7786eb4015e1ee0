"""Groups in the user's hands: a column of ids whose rows lie on both sides of a split, and whether the target is the group's own.

Looked for in the variables of the user's frames: pairs of pandas tables that share their columns, and pairs of index lists that
part one table or array. Of a column that repeats (users, patients, documents) it is told how many held-out rows belong to a group
that is trained on, and whether the targets that the script holds for training are the same all over each group.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sawbones.observe.sites import is_user_file

_LEAST_ROWS, _MAX_ROWS = 60, 1 << 18
_LEAST_GROUPS, _ROWS_OF_ONE = 16, 3.0  # fewer may be the kinds that made-up data is drawn from
_MAX_CLASSES, _GROUPS_OF_A_CLASS = 20, 3
_LEAST_CHANGE, _MOST_CHANGE = 0.6, 1.4  # of the class along the ids, against chance
_MAX_VISITED, _MAX_DEPTH = 1500, 4
_MAX_TABLES, _MAX_PARTS, _MAX_COLUMNS = 8, 8, 64

Codes = npt.NDArray[np.int64]


class _Hands:
    """What was found: tables, 1-D columns and lists of row numbers, each once."""

    def __init__(self) -> None:
        self.tables: list[tuple[str, Any]] = []
        self.columns: list[tuple[str, Codes]] = []
        self.parts: list[tuple[str, Codes]] = []
        self._visited: set[int] = set()

    def visit(self, root: str, value: Any, depth: int) -> None:
        if id(value) in self._visited or len(self._visited) > _MAX_VISITED or depth > _MAX_DEPTH:
            return
        if isinstance(value, (types.ModuleType, types.FunctionType, type, str, bytes, int, float, torch.nn.Module)):
            return
        self._visited.add(id(value))
        if type(value).__module__.split(".")[0] == "pandas":
            if hasattr(value, "columns") and _LEAST_ROWS <= len(value) <= _MAX_ROWS and len(self.tables) < _MAX_TABLES:
                self.tables.append((root, value))
            elif hasattr(value, "to_numpy") and not hasattr(value, "columns"):
                self._take(root, value.to_numpy())
            return
        if isinstance(value, (np.ndarray, torch.Tensor)):
            if isinstance(value, torch.Tensor) and (type(value) is not torch.Tensor or value.device.type != "cpu"):
                return
            self._take(root, value.detach().numpy() if isinstance(value, torch.Tensor) else value)
            return
        rows = getattr(value, "indices", None)
        if isinstance(value, torch.utils.data.Subset) and isinstance(rows, (list, np.ndarray)):
            self._take(root, np.asarray(rows))
        for held in _held(value):
            self.visit(root, held, depth + 1)

    def _take(self, root: str, array: npt.NDArray[Any]) -> None:
        if array.ndim != 1 or not 10 <= len(array) <= _MAX_ROWS:
            return
        codes = _codes(array)
        if codes is not None and len(self.columns) < _MAX_COLUMNS:
            self.columns.append((root, codes))
        if array.dtype.kind in "iu" and len(self.parts) < _MAX_PARTS and array.min() >= 0 and len(np.unique(array)) == len(array):
            self.parts.append((root, array.astype(np.int64)))


def held_groups(frame: types.FrameType | None) -> list[dict[str, Any]]:
    hands = _Hands()
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            for scope in (frame.f_locals, frame.f_globals):
                for name, value in list(scope.items()):
                    if not name.startswith("__"):
                        hands.visit(name, value, 0)
        frame = frame.f_back
    return [*_of_tables(hands), *_of_parts(hands)][:16]


def _of_tables(hands: _Hands) -> Iterator[dict[str, Any]]:
    """Two tables of the same columns, the larger one for training."""
    for (a, one), (b, two) in combinations(hands.tables, 2):
        if list(one.columns) != list(two.columns) or len(one) == len(two):
            continue
        (own, train), (other, test) = sorted([(a, one), (b, two)], key=lambda item: -len(item[1]))
        if train.index.is_unique and test.index.isin(train.index).all():
            continue  # the whole, and a part of it
        for column in list(train.columns)[:_MAX_COLUMNS]:
            both = np.concatenate([np.asarray(train[column], dtype=object), np.asarray(test[column], dtype=object)])
            codes = _codes(both) if train[column].dtype.kind != "f" else None
            found = _shared(codes, len(train), hands) if codes is not None else None
            if found is not None:
                yield {"column": str(column), "names": [own, other], **found}


def _of_parts(hands: _Hands) -> Iterator[dict[str, Any]]:
    """Two lists of row numbers that share none and part all rows of a column."""
    for (a, one), (b, two) in combinations(hands.parts, 2):
        (own, train), (other, test) = sorted([(a, one), (b, two)], key=lambda item: -len(item[1]))
        rows = np.concatenate([train, test])
        if len(rows) < _LEAST_ROWS or len(np.unique(rows)) != len(rows) or rows.max() != len(rows) - 1:
            continue
        tabled = [(str(c), t[c]) for _, t in hands.tables if len(t) == len(rows) for c in t.columns if t[c].dtype.kind != "f"]
        coded = [(name, codes) for name, column in tabled if (codes := _codes(column.to_numpy())) is not None]
        for name, codes in [*(c for c in hands.columns if len(c[1]) == len(rows)), *coded]:
            whole = [c[rows] for _, c in hands.columns if len(c) == len(rows) and c is not codes]
            found = _shared(codes[rows], len(train), hands, whole)
            if found is not None:
                yield {"column": name, "names": [own, other], **found}


def _shared(codes: Codes, count: int, hands: _Hands, whole: list[Codes] | None = None) -> dict[str, Any] | None:
    """How many of the rows after the first `count` belong to a group among those."""
    groups = len(np.unique(codes))
    if groups < _LEAST_GROUPS or len(codes) < _ROWS_OF_ONE * groups or len(codes) - count < 10:
        return None
    share = float(np.mean(np.isin(codes[count:], codes[:count])))
    targets = [c for _, c in hands.columns if len(c) == count] + [c[:count] for c in whole or ()]
    return {
        "groups": groups,
        "rows": [count, len(codes) - count],
        "share": share,
        "classes": max((_classes_of_groups(codes[:count], target) for target in targets), default=0),
    }


def _classes_of_groups(codes: Codes, target: Codes) -> int:
    """Classes of a target that is one and the same all over each group, with several groups of every class; else 0."""
    classes = np.unique(target)
    if not 2 <= len(classes) <= _MAX_CLASSES or len(classes) * _GROUPS_OF_A_CLASS > len(np.unique(codes)):
        return 0
    pairs = np.unique(np.stack([codes, target]), axis=1)
    if pairs.shape[1] != len(np.unique(codes)):
        return 0
    if min(np.sum(pairs[1] == c) for c in classes) < _GROUPS_OF_A_CLASS or not _is_by_chance(pairs[1]):
        return 0
    return len(classes)


def _is_by_chance(classes: Codes) -> bool:
    """Whether the class changes from one id to the next about as often as by chance. Ids have no order that would say anything of
    the class; an age, a count or a score that decides it does, and is a feature of the row."""
    shares = np.unique(classes, return_counts=True)[1] / len(classes)
    expected = (len(classes) - 1) * (1.0 - float(np.sum(shares**2)))
    return bool(_LEAST_CHANGE <= np.count_nonzero(np.diff(classes)) / expected <= _MOST_CHANGE)


def _codes(array: npt.NDArray[Any]) -> Codes | None:
    """Numbers for the values of a column of whole numbers or texts."""
    if array.dtype.kind == "f":
        if not np.all(np.isfinite(array)) or not np.array_equal(array, np.round(array)) or len(np.unique(array)) > _MAX_CLASSES:
            return None
    elif array.dtype.kind not in "iubUO":
        return None
    try:
        return np.unique(array.astype(str) if array.dtype.kind == "O" else array, return_inverse=True)[1].astype(np.int64)
    except (TypeError, ValueError):
        return None


def _held(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values()) if len(value) <= 64 else []
    if isinstance(value, (list, tuple)):
        return list(value) if len(value) <= 64 else []
    return list(getattr(value, "__dict__", {}).values())[:64]

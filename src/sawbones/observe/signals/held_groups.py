"""Groups in the user's hands: a column of ids whose rows lie on both sides of a split, and whether
the target is the group's own.

Looked for in the variables of the user's frames, and in the data sets and user's objects that a
trainer was handed: pairs of pandas tables that share their columns, pairs of data sets of one kind,
and pairs of index lists that part one table or array. Of a column that repeats (users, patients,
documents) it is told how many held-out rows belong to a group that is trained on, and whether the
targets that the script holds for training are the same all over each group.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sawbones.observe.sites import is_user_file
from sawbones.observe.variables import parts_of, variables_of
from sawbones.schema.held import HeldGroups

_LEAST_ROWS, _MAX_ROWS = 60, 1 << 18
_LEAST_GROUPS, _ROWS_OF_ONE = 16, 3.0  # fewer may be the kinds that made-up data is drawn from
_MAX_CLASSES, _GROUPS_OF_A_CLASS = 20, 3
_LEAST_CHANGE, _MOST_CHANGE = 0.6, 1.4  # of the class along the ids, against chance
_MAX_VISITED, _MAX_DEPTH = 1500, 4
_MAX_TABLES, _MAX_PARTS, _MAX_COLUMNS, _MAX_SETS = 8, 8, 64, 8

Codes = npt.NDArray[np.int64]


class _Hands:
    """What was found: tables, 1-D columns and lists of row numbers, each once."""

    def __init__(self) -> None:
        self.tables: list[tuple[str, Any]] = []
        self.columns: list[tuple[str, Codes]] = []
        self.parts: list[tuple[str, Codes]] = []
        self.sets: list[tuple[str, Any]] = []
        self.numbered: set[int] = (
            set()
        )  # columns that count from 0 or 1 on, by the id of their codes
        self._visited: set[int] = set()

    def visit(self, root: str, value: Any, depth: int) -> None:
        if id(value) in self._visited or len(self._visited) > _MAX_VISITED or depth > _MAX_DEPTH:
            return
        if isinstance(
            value,
            (types.ModuleType, types.FunctionType, type, str, bytes, int, float, torch.nn.Module),
        ):
            return
        self._visited.add(id(value))
        if type(value).__module__.split(".")[0] == "pandas":
            if (
                hasattr(value, "columns")
                and _LEAST_ROWS <= len(value) <= _MAX_ROWS
                and len(self.tables) < _MAX_TABLES
            ):
                self.tables.append((root, value))
            elif hasattr(value, "to_numpy") and not hasattr(value, "columns"):
                self._take(root, value.to_numpy())
            return
        if isinstance(value, (np.ndarray, torch.Tensor)):
            if isinstance(value, torch.Tensor) and (
                type(value) is not torch.Tensor
                or value.device.type != "cpu"
                or value.layout is not torch.strided
            ):
                return
            self._take(root, value.detach().numpy() if isinstance(value, torch.Tensor) else value)
            return
        rows = getattr(value, "indices", None)
        if isinstance(value, torch.utils.data.Subset) and isinstance(rows, (list, np.ndarray)):
            self._take(root, np.asarray(rows))
        elif isinstance(value, torch.utils.data.Dataset) and len(self.sets) < _MAX_SETS:
            self.sets.append((root, value))
        for held in parts_of(value):
            self.visit(root, held, depth + 1)

    def _take(self, root: str, array: npt.NDArray[Any]) -> None:
        if array.ndim != 1 or not 10 <= len(array) <= _MAX_ROWS:
            return
        codes = _codes(array)
        if codes is not None and len(self.columns) < _MAX_COLUMNS:
            self.columns.append((root, codes))
            if _is_numbered(array):
                self.numbered.add(id(codes))
        if (
            array.dtype.kind in "iu"
            and len(self.parts) < _MAX_PARTS
            and array.min() >= 0
            and len(np.unique(array)) == len(array)
        ):
            self.parts.append((root, array.astype(np.int64)))


def held_groups(frame: types.FrameType | None) -> tuple[HeldGroups, ...]:
    hands = _Hands()
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            for scope in (variables_of(frame), frame.f_globals):
                for name, value in list(scope.items()):
                    if not name.startswith("__"):
                        hands.visit(name, value, 0)
        else:
            for name, value in list(variables_of(frame).items()):
                if isinstance(
                    value, (torch.utils.data.Dataset, torch.utils.data.DataLoader)
                ) or _is_users(value):
                    hands.visit(name, value, 0)
        frame = frame.f_back
    return (*_of_tables(hands), *_of_sets(hands), *_of_parts(hands))[:16]


def _is_users(value: Any) -> bool:
    """Of a class of the user's own, such as the data module that a trainer was handed."""
    file = getattr(sys.modules.get(type(value).__module__), "__file__", None)
    return isinstance(file, str) and is_user_file(file)


def _of_tables(hands: _Hands) -> Iterator[HeldGroups]:
    """Two tables of the same columns, the larger one for training."""
    for (a, one), (b, two) in combinations(hands.tables, 2):
        if list(one.columns) != list(two.columns) or len(one) == len(two):
            continue
        (own, train), (other, test) = sorted([(a, one), (b, two)], key=lambda item: -len(item[1]))
        if train.index.is_unique and test.index.isin(train.index).all():
            continue  # the whole, and a part of it
        for column in list(train.columns)[:_MAX_COLUMNS]:
            both = np.concatenate(
                [np.asarray(train[column], dtype=object), np.asarray(test[column], dtype=object)]
            )
            codes = _codes(both) if train[column].dtype.kind != "f" else None
            numbered = codes is not None and _is_numbered(both)
            if codes is not None:
                called = str(column), (own, other)
                yield from _shared(called, codes, len(train), hands, numbered=numbered)


def _of_sets(hands: _Hands) -> Iterator[HeldGroups]:
    """Two data sets of one kind, each with columns of its own, the larger one for training."""
    for (a, one), (b, two) in combinations(hands.sets, 2):
        if type(one) is not type(two):
            continue
        ours, theirs = _columns(one), _columns(two)
        if (
            ours.keys() != theirs.keys()
            or not ours
            or len(next(iter(ours.values()))) == len(next(iter(theirs.values())))
        ):
            continue
        if len(next(iter(ours.values()))) < len(next(iter(theirs.values()))):
            (a, ours), (b, theirs) = (b, theirs), (a, ours)
        for name, column in ours.items():
            both = np.concatenate([column, theirs[name]])
            codes = _codes(both) if both.dtype.kind != "f" else None
            targets = [
                c for other, x in ours.items() if other != name and (c := _codes(x)) is not None
            ]
            if codes is not None:
                numbered = _is_numbered(both)
                yield from _shared((name, (a, b)), codes, len(column), hands, targets, numbered)


def _columns(data: Any) -> dict[str, npt.NDArray[Any]]:
    """What a data set holds one value of for each of its rows: arrays, lists, and what its records
    have at one place.
    """
    try:
        count = len(data)
    except (TypeError, NotImplementedError):
        return {}
    if not 10 <= count <= _MAX_ROWS:
        return {}
    found: dict[str, npt.NDArray[Any]] = {}
    parts = (
        list(enumerate(data.tensors))
        if isinstance(data, torch.utils.data.TensorDataset)
        else list(vars(data).items())
    )
    for name, value in parts[:64]:
        if (
            isinstance(value, torch.Tensor)
            and value.dim() == 1
            and len(value) == count
            and value.device.type == "cpu"
        ):
            found[str(name)] = value.detach().numpy()
        elif isinstance(value, np.ndarray) and value.shape == (count,):
            found[str(name)] = value
        elif isinstance(value, list) and len(value) == count:
            found.update(_of_records(str(name), value))
    return found


def _of_records(name: str, rows: list[Any]) -> dict[str, npt.NDArray[Any]]:
    first = rows[0]
    if isinstance(first, (int, str)) and all(type(row) is type(first) for row in rows):
        return {name: np.asarray(rows)}
    if not isinstance(first, (tuple, dict)) or not all(
        type(r) is type(first) and len(r) == len(first) for r in rows
    ):
        return {}
    places = list(first) if isinstance(first, dict) else list(range(len(first)))
    found: dict[str, npt.NDArray[Any]] = {}
    for place in places[:32]:
        try:
            values = [row[place] for row in rows]
        except (KeyError, IndexError):
            continue
        if isinstance(values[0], (int, str)) and all(type(v) is type(values[0]) for v in values):
            found[str(place)] = np.asarray(values)
    return found


def _of_parts(hands: _Hands) -> Iterator[HeldGroups]:
    """Two lists of row numbers that share none and part all rows of a column."""
    for (a, one), (b, two) in combinations(hands.parts, 2):
        (own, train), (other, test) = sorted([(a, one), (b, two)], key=lambda item: -len(item[1]))
        rows = np.concatenate([train, test])
        if (
            len(rows) < _LEAST_ROWS
            or len(np.unique(rows)) != len(rows)
            or rows.max() != len(rows) - 1
        ):
            continue
        tabled = [
            (str(c), t[c])
            for _, t in hands.tables
            if len(t) == len(rows)
            for c in t.columns
            if t[c].dtype.kind != "f"
        ]
        coded = [
            (name, codes)
            for name, column in tabled
            if (codes := _codes(column.to_numpy())) is not None
        ]
        for name, codes in [*(c for c in hands.columns if len(c[1]) == len(rows)), *coded]:
            whole = [c[rows] for _, c in hands.columns if len(c) == len(rows) and c is not codes]
            called, numbered = (name, (own, other)), id(codes) in hands.numbered
            yield from _shared(called, codes[rows], len(train), hands, whole, numbered)


def _shared(
    called: tuple[str, tuple[str, str]],
    codes: Codes,
    count: int,
    hands: _Hands,
    whole: list[Codes] | None = None,
    numbered: bool = False,
) -> Iterator[HeldGroups]:
    """How many of the rows after the first `count` belong to a group among those."""
    groups = len(np.unique(codes))
    if groups < _LEAST_GROUPS or len(codes) < _ROWS_OF_ONE * groups or len(codes) - count < 10:
        return
    share = float(np.mean(np.isin(codes[count:], codes[:count])))
    targets = [c for _, c in hands.columns if len(c) == count] + [c[:count] for c in whole or ()]
    classes = (_classes_of_groups(codes[:count], target, numbered) for target in targets)
    rows = (count, len(codes) - count)
    yield HeldGroups(*called, groups, rows, share, max(classes, default=0))


def _classes_of_groups(codes: Codes, target: Codes, numbered: bool) -> int:
    """Classes of a target that is one and the same all over each group, with several groups of
    every class; else 0.
    """
    classes = np.unique(target)
    if not 2 <= len(classes) <= _MAX_CLASSES or len(classes) * _GROUPS_OF_A_CLASS > len(
        np.unique(codes)
    ):
        return 0
    pairs = np.unique(np.stack([codes, target]), axis=1)
    if pairs.shape[1] != len(np.unique(codes)):
        return 0
    if min(np.sum(pairs[1] == c) for c in classes) < _GROUPS_OF_A_CLASS or not _is_by_chance(
        pairs[1], numbered
    ):
        return 0
    return len(classes)


def _is_numbered(array: npt.NDArray[Any]) -> bool:
    """Whether the values are all the whole numbers from 0 or 1 to some other, as ids that were
    given out one after another.
    """
    try:
        values = np.unique(array.astype(np.int64) if array.dtype.kind == "O" else array)
    except (TypeError, ValueError):
        return False
    return (
        values.dtype.kind in "iu"
        and values[0] in (0, 1)
        and bool(values[-1] - values[0] == len(values) - 1)
    )


def _is_by_chance(classes: Codes, numbered: bool) -> bool:
    """Whether the class changes from one id to the next about as often as by chance. Ids have no
    order that would say anything of the class; an age, a count or a score that decides it does, and
    is a feature of the row. Ids that were given out in turns, one
    for each class, change it more often."""
    shares = np.unique(classes, return_counts=True)[1] / len(classes)
    expected = (len(classes) - 1) * (1.0 - float(np.sum(shares**2)))
    change = np.count_nonzero(np.diff(classes)) / expected
    return bool(change >= _LEAST_CHANGE and (numbered or change <= _MOST_CHANGE))


def _codes(array: npt.NDArray[Any]) -> Codes | None:
    """Numbers for the values of a column of whole numbers or texts."""
    if array.dtype.kind == "f":
        if (
            not np.all(np.isfinite(array))
            or not np.array_equal(array, np.round(array))
            or len(np.unique(array)) > _MAX_CLASSES
        ):
            return None
    elif array.dtype.kind not in "iubUO":
        return None
    try:
        return np.unique(
            array.astype(str) if array.dtype.kind == "O" else array, return_inverse=True
        )[1].astype(np.int64)
    except (TypeError, ValueError):
        return None

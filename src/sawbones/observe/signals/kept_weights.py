"""What a script keeps at its best score so far, and whether that is the weights that are trained,
in the same memory, or a copy of them.

Looked at after steps, where the source keeps anything in this way at all: the variable of the frame
that is running, or the attribute of an object that such a frame holds.
"""

from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

import torch
from torch import nn

from sawbones.observe.signals.best_kept import (
    Keep,
    attribute_read_after,
    function_at,
    keeps_in,
    read_after,
)
from sawbones.observe.signals.source_files import SourceFile, user_files
from sawbones.observe.sites import SiteFinder, is_user_file
from sawbones.observe.variables import variables_of
from sawbones.schema.loaded import KeptWeights

_MAX_KEEPS = 16
_MAX_TENSORS = 4096
_DEPTH = 3  # of containers in one another
_AGAIN = 10  # steps, after which what has stayed where it was is looked at again
_SEARCHED, _SEARCH_AGAIN = 3, 50  # first steps that look for objects, and how often later ones do
_OWN_REFERENCES = 4  # to the variables of a frame: of that, of two functions here, of the question

_Place = tuple[SourceFile, str, int, int]  # file, function, its first line, the line that is at


class _Kept:
    """What one keep held, look by look."""

    def __init__(self, keep: Keep) -> None:
        self.keep = keep
        self.holder: Callable[[], Any] | None = None  # of an attribute, held weakly
        self.value = 0  # identity
        self.values = 0  # different ones so far, among those that held weights
        self.looks = 0  # at that value
        self.since = 0  # steps that were over when it was put there
        self.until = 0  # the latest step that it was looked at
        self.tensors = self.same = self.trained = 0
        self.places: list[_Place] = []  # of the frames that were running then

    def saw(
        self,
        value: Any,
        params: list[torch.Tensor],
        steps: tuple[int, int],
        places: list[_Place],
    ) -> None:
        is_new = id(value) != self.value
        if not is_new and self.looks > 1 and steps[1] - self.until < _AGAIN:
            return
        pointers = {p for t in params if (p := _memory(t))}
        found = [p for part in _tensors_in(value) if (p := _memory(part))]
        self.tensors, self.same = len(found), sum(p in pointers for p in found)
        self.trained = len(params)
        if is_new:
            self.value, self.since, self.looks = id(value), steps[0], 0
            self.values += bool(found)
        self.looks += 1
        self.until, self.places = steps[1], places


class KeptLog:
    def __init__(self, sites: SiteFinder) -> None:
        self._sites = sites
        self._kept: list[_Kept] | None = None
        self._files: list[SourceFile] = []
        self._codes: dict[CodeType, SourceFile | None] = {}

    def look(
        self, params: Iterable[torch.Tensor], steps: tuple[int, int], frame: FrameType | None
    ) -> None:
        """So many steps of these were over when what was kept before the latest look could last be
        put there, and are now.
        """
        if self._kept is None:
            self._files = user_files(self._sites)
            keeps = [keep for file in self._files for keep in keeps_in(file)]
            self._kept = [_Kept(keep) for keep in keeps[:_MAX_KEEPS]]
            self._files = self._files if keeps else []
        if not self._kept:
            return
        trained = list(params)
        frames = [(f, file) for f in _outwards(frame) if (file := self._file_of(f)) is not None]
        places = [
            (file, f.f_code.co_name, f.f_code.co_firstlineno, f.f_lineno) for f, file in frames
        ]
        searches = steps[1] <= _SEARCHED or steps[1] % _SEARCH_AGAIN == 0
        for kept in self._kept:
            value = self._value(kept, frames, searches)
            if value is not None:
                kept.saw(value, trained, steps, places)

    def _file_of(self, frame: FrameType) -> SourceFile | None:
        code = frame.f_code
        if code not in self._codes:
            path = code.co_filename if is_user_file(code.co_filename) else ""
            self._codes[code] = next((f for f in self._files if f.path == path), None)
        return self._codes[code]

    def _value(
        self, kept: _Kept, frames: list[tuple[FrameType, SourceFile]], searches: bool
    ) -> Any:
        keep = kept.keep
        if keep.owner:
            if kept.holder is None and searches:
                kept.holder = _object_of(keep, frames)
            holder = kept.holder() if kept.holder is not None else None
            return getattr(holder, "__dict__", {}).get(keep.name)
        for frame, file in frames:
            code = frame.f_code
            begins = not keep.first or code.co_firstlineno == keep.first
            if file is keep.file and code.co_name == keep.function and begins:
                return _variable(frame, keep.name)
        return None

    def record(self) -> tuple[KeptWeights, ...]:
        rows = []
        for kept in self._kept or ():
            if not kept.tensors or (kept.keep.rebound and kept.values < 2):
                continue
            read = self._read(kept)
            if read is not None:
                keep, (file, line) = kept.keep, read
                site = keep.file.site(self._sites, keep.line, keep.function)
                rows.append(
                    KeptWeights(
                        kept.tensors,
                        kept.same,
                        kept.trained,
                        kept.since,
                        kept.until,
                        site,
                        file.site(self._sites, line),
                    )
                )
        self._kept = []
        return tuple(rows)

    def _read(self, kept: _Kept) -> tuple[SourceFile, int] | None:
        keep = kept.keep
        for file, function, first, line in kept.places:
            if not keep.owner:
                if file is keep.file and function == keep.function:
                    found = read_after(keep, line)
                    return None if found is None else (file, found)
                continue
            scope = function_at(file.tree, function, first)
            if scope is None:
                continue
            for other in self._files:
                found = attribute_read_after(keep, other.tree, scope, line, direct=other is file)
                if found is not None:
                    return other, found
        return None


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _object_of(keep: Keep, frames: list[tuple[FrameType, SourceFile]]) -> Callable[[], Any] | None:
    """An object of the class that keeps, which a running function holds, or an object of it."""
    for frame, _ in frames:
        for value in _all_variables(frame):
            for one in (value, *getattr(value, "__dict__", {}).values()):
                if _is_of(keep, one):
                    return weakref.ref(one)
    return None


def _is_of(keep: Keep, value: Any) -> bool:
    kind = type(value)
    module = sys.modules.get(kind.__module__)
    return kind.__name__ == keep.owner and getattr(module, "__file__", None) == keep.file.path


def _variable(frame: FrameType, name: str) -> Any:
    variables = variables_of(frame)
    value = variables.get(name)
    _let_go(frame, variables)
    return value


def _all_variables(frame: FrameType) -> list[Any]:
    variables = variables_of(frame)
    values = list(variables.values())
    _let_go(frame, variables)
    # of a program's own module there are few, and its classes hold more than its variables
    return [v for v in values if not isinstance(v, type) and not inspect.ismodule(v)]


def _let_go(frame: FrameType, variables: Mapping[str, Any]) -> None:
    """Before Python 3.13 a frame keeps the dict that its variables were copied to, and with it
    tensors that the script gives up. Emptied, unless the script has asked for it too (`locals()`).
    """
    is_copy = isinstance(variables, dict) and variables is not frame.f_globals
    if is_copy and sys.getrefcount(variables) <= _OWN_REFERENCES:
        variables.clear()  # type: ignore[attr-defined]


def _tensors_in(value: Any, depth: int = _DEPTH) -> list[Any]:
    """Tensors and arrays of numbers with a fraction."""
    if isinstance(value, torch.Tensor):
        return [value] if value.is_floating_point() else []
    if (
        type(value).__module__ == "numpy"
        and getattr(getattr(value, "dtype", None), "kind", "") == "f"
    ):
        return [value] if hasattr(value, "ctypes") and value.ndim else []
    if isinstance(value, nn.Module):
        return list(value.parameters())
    if not depth or not isinstance(value, (Mapping, list, tuple)) or len(value) > _MAX_TENSORS:
        return []
    parts = value.values() if isinstance(value, Mapping) else value
    return [found for part in parts for found in _tensors_in(part, depth - 1)]


def _memory(value: Any) -> int:
    """Where its storage begins; 0: it has none of its own."""
    if not isinstance(value, torch.Tensor):
        return int(value.ctypes.data)
    if value.layout is not torch.strided or not value.numel():
        return 0
    return value.untyped_storage().data_ptr()

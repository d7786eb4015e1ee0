"""Arrivals: what a step was fed. A batch from a loader, or, without one, what the loop's frame gave
to its model.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np
import torch

from sawbones.capture.packing import LeftOut
from sawbones.observe.fingerprints import tensors_in
from sawbones.observe.sites import is_user_file

_SCALARS = frozenset({bool, int, float, str})
_CONTAINERS = frozenset({tuple, list, dict})
_PLAIN = frozenset({type(None), bool, int, float, str, bytes})
_MAX_VARIABLES = 400
_MAX_TEXT = 200
_ASKS_FOR_LOCALS = frozenset({"locals", "vars", "eval", "exec"})
_OWN_REFERENCES = 3  # to a frame's dict of variables: the frame's, ours, and the question's
_user_code: dict[Any, bool] = {}


@dataclass(slots=True)
class Arrival:
    step: int
    microstep: int
    kind: str  # "loader", "ahead" (a loader that is a batch ahead of the loop) or "forward"
    key: list[Any]  # by which a rebuilt run knows the same place: file, line, data set, its size
    value: Any
    rng: dict[str, Any]
    fetched: tuple[int, int] = (0, 0)  # step and microstep in which it came
    scalars: dict[str, Any] = field(
        default_factory=dict
    )  # plain variables of the loop, at the first model call
    versions: tuple[int, ...] | None = None  # of its tensors, where they were looked at
    used: bool = True  # False while a batch that came ahead waits for its step
    num_bytes: int = 0

    def tensors(self) -> list[torch.Tensor]:
        return [t for _, t in tensors_in(self.value)]

    def look(self) -> None:
        tensors = self.tensors()
        self.versions = versions_of(tensors)
        self.num_bytes = sum(t.nbytes for t in tensors if t.layout is torch.strided)

    def changed_since(self) -> bool:
        return self.versions is not None and versions_of(self.tensors()) != self.versions


def versions_of(tensors: list[torch.Tensor]) -> tuple[int, ...]:
    try:
        return tuple([t._version for t in tensors])
    except RuntimeError:  # inference tensors do not count
        return ()


def loop_frame(start: FrameType | None) -> FrameType | None:
    """The innermost frame of the user's own code."""
    frame = start
    while frame is not None:
        code = frame.f_code
        known = _user_code.get(code)
        if known is None:
            known = _user_code[code] = is_user_file(code.co_filename)
        if known:
            return frame
        frame = frame.f_back
    return None


def caller(depth: int = 2) -> FrameType | None:
    return loop_frame(sys._getframe(depth))


def variables_of(frame: FrameType | None) -> dict[str, Any]:
    """Before Python 3.13 a function's variables are put into a dict that its frame then keeps, and
    that `locals()` gives to the script: a function that asks for it is not read, and of any other
    the dict is emptied again, so that it keeps nothing alive.
    """
    if frame is None:
        return {}
    code = frame.f_code
    if sys.version_info >= (3, 13) or not code.co_flags & inspect.CO_OPTIMIZED:
        found = frame.f_locals
        return found if len(found) <= _MAX_VARIABLES else {}
    if len(code.co_varnames) > _MAX_VARIABLES or not _ASKS_FOR_LOCALS.isdisjoint(code.co_names):
        return {}
    kept = frame.f_locals
    found = dict(kept)
    if sys.getrefcount(kept) <= _OWN_REFERENCES:
        kept.clear()
    return found


def scalars_of(variables: dict[str, Any], names: list[str] | None = None) -> dict[str, Any]:
    """Of these names; without them, of all."""
    given = variables.items() if names is None else [(name, variables.get(name)) for name in names]
    return {
        k: v
        for k, v in given
        if v.__class__ in _SCALARS and (v.__class__ is not str or len(v) < _MAX_TEXT)
    }


def tensors_beside(variables: dict[str, Any], inputs: list[torch.Tensor]) -> dict[str, Any]:
    """Variables of the loop that hold as many examples as the model is given: targets, masks,
    indices.
    """
    sizes = {_num_rows(t) for t in inputs} - {0}
    found: dict[str, Any] = {}
    for name, value in variables.items():
        kind = value.__class__
        if kind is torch.Tensor:
            if _num_rows(value) in sizes and not value.requires_grad:
                found[name] = value
        elif kind in _CONTAINERS and 0 < len(value) <= 8:
            inner = tensors_in(value)
            if inner and all(not t.requires_grad and _num_rows(t) in sizes for _, t in inner):
                found[name] = value
    return found


def _num_rows(value: torch.Tensor) -> int:
    return value.shape[0] if value.dim() and not value.is_nested else 0


def aliased(value: Any) -> Any:
    """The same memory in tensors of our own: the script's are gone when it lets go of them."""
    return _taken(value, torch.Tensor.detach, {}, 0)


def copied(value: Any) -> Any:
    """The same in memory of our own."""
    return _taken(value, lambda tensor: tensor.detach().clone(), {}, 0)


_Take = Callable[[torch.Tensor], torch.Tensor]


def _taken(value: Any, take: _Take, known: dict[int, torch.Tensor], depth: int) -> Any:
    if isinstance(value, torch.Tensor):
        found = known.get(id(value))  # one that comes twice stays one
        if found is None:
            found = known[id(value)] = take(value)
        return found
    kind = value.__class__
    if kind in _PLAIN or depth > 4:
        return value
    if kind is dict:
        return {k: _taken(v, take, known, depth + 1) for k, v in value.items()}
    if kind in _CONTAINERS:
        return kind([_taken(v, take, known, depth + 1) for v in value])
    return _of_another_class(value, take, known, depth)


def _of_another_class(value: Any, take: _Take, known: dict[int, torch.Tensor], depth: int) -> Any:
    """As a bundle would hold it, so that the script's own object is not kept alive: a named tuple
    as a tuple, a BatchEncoding as a dict, and of an object that no bundle can hold its class only.
    """
    if isinstance(value, tuple):
        return tuple(_taken(v, take, known, depth + 1) for v in tuple.__iter__(value))
    if isinstance(value, list):
        return [_taken(v, take, known, depth + 1) for v in list.__iter__(value)]
    if isinstance(value, Mapping):
        try:
            return {k: _taken(value[k], take, known, depth + 1) for k in list(value.keys())}
        except Exception:  # of a class of the script's, which may raise what it likes
            return value
    is_readable = isinstance(value, (np.ndarray, np.generic, *_PLAIN)) or hasattr(value, "keys")
    return value if is_readable else LeftOut(type(value).__name__)


def cloned(value: Any, depth: int = 0) -> Any:
    """Arguments of a call, with tensors of their own; what else there is stays what it is."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if depth > 4:
        return value
    if type(value) in (list, tuple):
        return type(value)(cloned(v, depth + 1) for v in value)
    if type(value) is dict:
        return {k: cloned(v, depth + 1) for k, v in value.items()}
    return value

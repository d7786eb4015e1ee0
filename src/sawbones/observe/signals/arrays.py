"""Outputs of a model that leave torch for NumPy: an array that tells what is done with it, and is
like any other otherwise.

Only arrays made by `.numpy()` from outputs of an evaluation are of this kind, and what NumPy makes
from them. Anything that asks for a plain array (np.asarray, scikit-learn) gets one.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sawbones.observe.sites import is_user_file
from sawbones.trace.operators import normal

# (name, what went in, keyword arguments, result) -> (role, nodes) of the result, or None
Tell = Callable[[str, tuple[Any, ...], Mapping[str, Any], Any], tuple[str, tuple[int, ...]] | None]

# Of ufuncs, where torch has another name.
_NAMES = {"equal": "eq", "not_equal": "ne", "rint": "round", "expit": "sigmoid"}
# Functions that put the arrays of several batches into one.
_JOINS = (np.concatenate, np.stack, np.vstack, np.hstack, np.append, np.column_stack)


HANDED_OVER = "handed over"
_SHAPE: Any = np.ndarray.shape
_METRICS = ("sklearn", "torchmetrics")  # others may hold anything: a plot has an axis
_FRAMES = 6  # of a library that are looked into


class Told(np.ndarray):
    """Carries what it came from, and tells every operation on it."""

    __module__ = "numpy"
    role: str
    nodes: tuple[int, ...]
    tell: Tell | None

    def __array_finalize__(self, source: Any) -> None:
        self.role = getattr(source, "role", "output")
        self.nodes = getattr(source, "nodes", ())
        self.tell = getattr(source, "tell", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = tuple(x.view(np.ndarray) if isinstance(x, Told) else x for x in inputs)
        if "out" in kwargs:
            kwargs["out"] = tuple(
                x.view(np.ndarray) if isinstance(x, Told) else x for x in kwargs["out"]
            )
        result = getattr(ufunc, method)(*plain, **kwargs)
        name = (
            _NAMES.get(ufunc.__name__, normal(ufunc.__name__))
            if method == "__call__"
            else f"{ufunc.__name__}.{method}"
        )
        return self._said(name, inputs, {}, result)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func not in _JOINS:
            return super().__array_function__(func, types, args, kwargs)
        parts = [part for part in _parts(args) if isinstance(part, np.ndarray)]
        return self._said("cat", tuple(parts), {}, func(*_plain(args), **_plain(kwargs)))

    def __getitem__(self, key: Any) -> Any:
        return self._said("__getitem__", (self, key), {}, self.view(np.ndarray)[_plain(key)])

    def argmax(self, *args: Any, **kwargs: Any) -> Any:
        return self._said(
            "argmax", (self, *args), kwargs, self.view(np.ndarray).argmax(*args, **kwargs)
        )

    def mean(self, *args: Any, **kwargs: Any) -> Any:
        return self._said(
            "mean", (self, *args), kwargs, self.view(np.ndarray).mean(*args, **kwargs)
        )

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        return self._said("sum", (self, *args), kwargs, self.view(np.ndarray).sum(*args, **kwargs))

    def round(self, *args: Any, **kwargs: Any) -> Any:
        return self._said(
            "round", (self, *args), kwargs, self.view(np.ndarray).round(*args, **kwargs)
        )

    @property
    def shape(self) -> Any:
        """Asked by libraries before they compare it with something: what that is, they hold."""
        if self.tell is not None and self.role == "output":
            partners = _partners(sys._getframe(1), len(self.view(np.ndarray)))
            if partners:
                self.tell(HANDED_OVER, (self, *partners), {}, None)
        return _SHAPE.__get__(self)

    @shape.setter
    def shape(self, value: Any) -> None:
        _SHAPE.__set__(self, value)

    def __reduce__(self) -> Any:
        return self.view(np.ndarray).__reduce__()  # a copy elsewhere tells nothing

    def __deepcopy__(self, memo: Any) -> Any:
        return self.view(np.ndarray).copy()

    def _said(
        self, name: str, given: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
    ) -> Any:
        told = self.tell(name, given, kwargs, result) if self.tell is not None else None
        if not isinstance(result, np.ndarray) or result.ndim == 0:
            return result
        return wrap(result, self.tell, *(told or (self.role, self.nodes)))


def wrap(array: npt.NDArray[Any], tell: Tell | None, role: str, nodes: tuple[int, ...]) -> Told:
    told = array.view(Told)
    told.role, told.nodes, told.tell = role, nodes, tell
    return told


def _partners(frame: types.FrameType | None, length: int) -> list[Any]:
    """Arrays as long as this that the library's functions hold which ask for it: targets, where it
    is a metric.
    """
    found: list[Any] = []
    for _ in range(_FRAMES):
        if frame is None or is_user_file(frame.f_code.co_filename):
            break
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        for value in list(frame.f_locals.values()) if package in _METRICS else ():
            for item in value if isinstance(value, (tuple, list)) and len(value) <= 4 else (value,):
                if _is_partner(item, length) and not any(item is other for other in found):
                    found.append(item)
        frame = frame.f_back
    return [x.to_numpy() if hasattr(x, "to_numpy") else np.asarray(x) for x in found]


def _is_partner(value: Any, length: int) -> bool:
    if isinstance(value, np.ndarray):
        return not isinstance(value, Told) and value.ndim == 1 and len(value) == length
    is_column = type(value).__module__.startswith("pandas") and hasattr(value, "to_numpy")
    if is_column and not hasattr(value, "columns"):
        return len(value) == length
    return isinstance(value, list) and len(value) == length and isinstance(value[0], (int, float))


def _parts(given: Any) -> list[Any]:
    """What stands in these lists and tuples."""
    if isinstance(given, (list, tuple)):
        return [part for one in given for part in _parts(one)]
    return [given]


def _plain(key: Any) -> Any:
    if type(key) in (tuple, list):
        return type(key)(_plain(k) for k in key)
    if type(key) is dict:
        return {name: _plain(value) for name, value in key.items()}
    return key.view(np.ndarray) if isinstance(key, Told) else key

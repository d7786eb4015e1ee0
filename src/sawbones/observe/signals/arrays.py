"""Outputs of a model that leave torch for NumPy: an array that tells what is done with it, and is
like any other otherwise.

Only arrays made by `.numpy()` from outputs of an evaluation are of this kind, and what NumPy makes
from them. Anything that asks for a plain array (np.asarray, scikit-learn) gets one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

# (name, what went in, keyword arguments, result) -> (role, nodes) of the result, or None
Tell = Callable[[str, tuple[Any, ...], Mapping[str, Any], Any], tuple[str, tuple[int, ...]] | None]

_NAMES = {
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "equal": "eq",
    "not_equal": "ne",
    "multiply": "mul",
    "logical_and": "logical_and",
    "bitwise_and": "bitwise_and",
    "rint": "round",
    "true_divide": "div",
    "divide": "div",
    "expit": "sigmoid",
    "subtract": "sub",
    "logical_or": "logical_or",
    "bitwise_or": "bitwise_or",
}
# Functions that put the arrays of several batches into one.
_JOINS = (np.concatenate, np.stack, np.vstack, np.hstack, np.append, np.column_stack)


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
            _NAMES.get(ufunc.__name__, ufunc.__name__)
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

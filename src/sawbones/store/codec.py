"""Records <-> plain JSON values. Non-finite floats travel as "nan", "inf", "-inf", so that they are
never lost.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")
_PLAIN: dict[Any, type | tuple[type, ...]] = {str: str, int: int, bool: (bool, int)}
_NONFINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def to_plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, (str, int, bool)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            f.name: to_plain(v)
            for f in dataclasses.fields(value)
            if (v := getattr(value, f.name)) is not None and not _is_default(f, v)
        }
    if isinstance(value, collections.abc.Mapping):
        return {str(k): to_plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_plain(v) for v in value]
    if hasattr(value, "item") and not getattr(value, "shape", ()):  # a NumPy scalar
        return to_plain(value.item())
    if hasattr(value, "tolist"):
        return to_plain(value.tolist())
    return str(value)


def _is_default(f: dataclasses.Field[Any], value: Any) -> bool:
    return (
        f.default is not dataclasses.MISSING
        and type(f.default) is type(value)
        and f.default == value
    )


def revive(value: Any) -> Any:
    """Undo to_plain for values without a declared type: the three non-finite words become floats
    again.
    """
    if isinstance(value, str):
        return _NONFINITE.get(value, value)
    if isinstance(value, list):
        return [revive(v) for v in value]
    if isinstance(value, dict):
        return {k: revive(v) for k, v in value.items()}
    return value


@cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def from_plain(kind: type[T], value: Any) -> T:
    return typing.cast(T, _decode(kind, value))


def decode_fields(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the class's fields that are there, each as its own type. None: it is not."""
    hints = _hints(cls)
    return {
        f.name: _decode(hints[f.name], values[f.name])
        for f in dataclasses.fields(cls)
        if values.get(f.name) is not None
    }


def _decode(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    if dataclasses.is_dataclass(kind):
        if isinstance(value, typing.cast(type, kind)):
            return value
        made = decode_fields(typing.cast(type, kind), value)
        for f in dataclasses.fields(kind):  # None is left out when written
            if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING:
                made.setdefault(f.name, None)
        return typing.cast(type, kind)(**made)
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        members = [a for a in typing.get_args(kind) if a is not type(None)]
        return _decode(members[0], value) if len(members) == 1 else revive(value)
    if origin is tuple:
        args = typing.get_args(kind)
        if len(args) == 2 and args[1] is Ellipsis:
            return tuple(_decode(args[0], v) for v in value)
        return tuple(_decode(a, v) for a, v in zip(args, value, strict=False))
    if origin in (collections.abc.Mapping, dict):
        key, item = typing.get_args(kind)
        return {(int(k) if key is int else k): _decode(item, v) for k, v in value.items()}
    if kind is float:
        return float(value)
    if kind in _PLAIN and not isinstance(value, _PLAIN[kind]):
        raise TypeError(f"{kind.__name__} was expected, not {type(value).__name__}")
    return revive(value) if kind is Any else value

"""Records <-> plain JSON values. Non-finite floats travel as "nan", "inf", "-inf", so that they are
never lost.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import math
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")
Decoder = Callable[[Any], Any]
_PLAIN: dict[Any, type | tuple[type, ...]] = {str: str, int: int, bool: (bool, int)}
_UNCHANGED = frozenset({str, int, bool, type(None)})
_AS_THEY_ARE = (float, int, bool, type(None))
_NONFINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def to_plain(value: Any) -> Any:
    kind: Any = type(value)
    if kind in _UNCHANGED:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if kind is tuple or kind is list:
        return [v if type(v) in _UNCHANGED else to_plain(v) for v in value]
    if isinstance(value, (str, int)):
        return value
    if (fields := _defaults(kind)) is not None:
        plain = {}
        for name, default, kind_of_default in fields:
            v = getattr(value, name)
            if v is not None and not (type(v) is kind_of_default and v == default):
                plain[name] = v if type(v) in _UNCHANGED else to_plain(v)
        return plain
    if isinstance(value, collections.abc.Mapping):
        return {str(k): to_plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_plain(v) for v in value]
    if hasattr(value, "item") and not getattr(value, "shape", ()):  # a NumPy scalar
        return to_plain(value.item())
    if hasattr(value, "tolist"):
        return to_plain(value.tolist())
    return str(value)


@cache
def _defaults(cls: type) -> tuple[tuple[str, Any, type], ...] | None:
    """Name, default and its type of each field, where a field without one has a type that no value
    is of; None for a class that is no record.
    """
    if not dataclasses.is_dataclass(cls):
        return None
    return tuple((f.name, f.default, type(f.default)) for f in dataclasses.fields(cls))


def revive(value: Any) -> Any:
    """Undo to_plain for values without a declared type: the three non-finite words become floats
    again.
    """
    if type(value) in _AS_THEY_ARE:
        return value
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
    return typing.cast(T, None if value is None else _decoder(typing.cast(Any, kind))(value))


def decode_fields(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the class's fields that are there, each as its own type. None: it is not."""
    return {
        name: decode(values[name])
        for name, decode, _ in _field_decoders(cls)
        if values.get(name) is not None
    }


@cache
def _field_decoders(cls: type) -> tuple[tuple[str, Decoder, bool], ...]:
    """Name, decoder, and whether it has no default."""
    hints = _hints(cls)
    return tuple(
        (
            f.name,
            _decoder(hints[f.name]),
            f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING,
        )
        for f in dataclasses.fields(cls)
    )


@cache
def _decoder(kind: Any) -> Decoder:
    """What makes a value of this type out of a plain one that is not None. Made once for each type:
    a recording has hundreds of thousands of values, and asking `typing` takes longer than decoding.
    """
    if dataclasses.is_dataclass(kind):
        return _decoder_of_record(typing.cast(type, kind))
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        members = [a for a in args if a is not type(None)]
        return _decoder(members[0]) if len(members) == 1 else revive
    if origin is tuple:
        return _decoder_of_tuple(args)
    if origin in (collections.abc.Mapping, dict):
        is_number, item = args[0] is int, _decoder(args[1])
        return lambda value: {
            (int(k) if is_number else k): None if v is None else item(v) for k, v in value.items()
        }
    if kind is float:
        return float
    if kind in _PLAIN:
        return _decoder_of_plain(kind)
    return revive if kind is Any else _unchanged


def _decoder_of_record(cls: type) -> Decoder:
    def decode(value: Any) -> Any:
        if isinstance(value, cls):
            return value
        made: dict[str, Any] = {}
        for name, of_field, is_required in _field_decoders(cls):
            if name in value:
                plain = value[name]
                made[name] = None if plain is None else of_field(plain)
            elif is_required:  # None is left out when written
                made[name] = None
        return cls(**made)

    return decode


def _decoder_of_tuple(args: tuple[Any, ...]) -> Decoder:
    if len(args) == 2 and args[1] is Ellipsis:
        item = _decoder(args[0])
        return lambda value: tuple([None if v is None else item(v) for v in value])
    items = [_decoder(a) for a in args]
    return lambda value: tuple(
        [None if v is None else item(v) for item, v in zip(items, value, strict=False)]
    )


def _decoder_of_plain(kind: Any) -> Decoder:
    allowed = _PLAIN[kind]

    def check(value: Any) -> Any:
        if not isinstance(value, allowed):
            raise TypeError(f"{kind.__name__} was expected, not {type(value).__name__}")
        return value

    return check


def _unchanged(value: Any) -> Any:
    return value

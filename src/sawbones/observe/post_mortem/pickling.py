"""Which members of a loader or its data set no worker process can be given. Told by what they are:
nothing is pickled for it.
"""

from __future__ import annotations

import io
import socket
import sys
import threading
import types
from collections.abc import Iterator, Mapping
from typing import Any

MOST_MEMBERS = 24
_OF_LOADER = ("collate_fn", "worker_init_fn", "sampler", "batch_sampler")
_NEVER = (
    io.IOBase,
    socket.socket,
    types.GeneratorType,
    types.ModuleType,
    type(threading.Lock()),
    type(threading.RLock()),
    threading.Thread,
)


def unpicklable(loader: Mapping[str, Any], dataset: object) -> list[tuple[str, str, object]]:
    """(member, what it is, the value that is at fault), those of the data set first."""
    whole = _why(dataset)
    found = [("dataset", whole, dataset)] if whole else []
    found += [(f"dataset.{name}", what, value) for name, what, value in _members(dataset, depth=3)]
    for name in _OF_LOADER:
        value = loader.get(name, loader.get(f"_{name}"))
        what = _why(value)
        if what:
            found.append((name, what, value))
    return found


def _members(value: object, depth: int) -> Iterator[tuple[str, str, object]]:
    """Attributes of an object, those of what it holds under the attribute that leads there."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return
    for name, member in list(own.items())[:MOST_MEMBERS] if type(own) is dict else ():
        what = _why(member)
        if what:
            yield name, what, member
            continue
        inner = list(member)[:MOST_MEMBERS] if type(member) in (list, tuple) else [member]
        if depth > 1 and type(member) not in (dict, str, bytes, int, float):
            below = [
                (why, value)
                for item in inner
                for why, value in (
                    (_why(item), item),
                    *((why, held) for _, why, held in _members(item, depth - 1)),
                )
            ]
            yield from ((name, why, held) for why, held in [b for b in below if b[0]][:1])


def _why(value: object) -> str:
    cls = type(value)
    if issubclass(cls, types.FunctionType):
        place = str(value.__qualname__)  # type: ignore[attr-defined]
        if value.__name__ == "<lambda>":  # type: ignore[attr-defined]
            return "a lambda"
        return "a function inside of a function" if "<locals>" in place else ""
    if issubclass(cls, io.IOBase) and not issubclass(cls, (io.BytesIO, io.StringIO)):
        return "an open file"
    if issubclass(cls, _NEVER) and not issubclass(cls, io.IOBase):
        return f"a {cls.__name__}"
    if cls.__module__ == "sqlite3" and "sqlite3" in sys.modules:
        return "a connection to a database"
    return "an object of a class inside of a function" if "<locals>" in cls.__qualname__ else ""

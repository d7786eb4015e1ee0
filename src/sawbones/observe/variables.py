"""The variables that a frame of the script holds."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping
from typing import Any


def variables_of(frame: types.FrameType) -> Mapping[str, Any]:
    """Of a function its locals, of a module its globals, of a class that is being made none.

    Python 3.12 runs the comprehensions of a module or class in its frame. Whoever reads `f_locals`
    of that frame under a trace function empties their variables (CPython issue 108732).
    """
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return frame.f_locals
    return frame.f_globals if frame.f_code.co_name == "<module>" else {}


def parts_of(value: Any) -> list[Any]:
    """What a small container, or an object, holds."""
    if isinstance(value, Mapping):
        return list(value.values()) if len(value) <= 64 else []
    if isinstance(value, (list, tuple)):
        return list(value) if len(value) <= 64 else []
    return list(getattr(value, "__dict__", {}).values())[:64]

"""Where modules were built: the user's line that made a layer or a criterion, which is where its
settings can be changed.
"""

from __future__ import annotations

import weakref
from types import FrameType

from torch import nn

from sawbones.schema import Site

MAX_MODULES = 20_000

# By identity: a module may define its own hash (metrics hash their state, which does not exist yet
# when they are made).
_built: dict[int, tuple[weakref.ref[nn.Module], Site]] = {}


def remember(module: nn.Module, site: Site) -> None:
    if len(_built) < MAX_MODULES:
        _built[id(module)] = (weakref.ref(module), site)


def forget() -> None:
    """Once nothing is recorded any more: another recording knows what it has seen itself."""
    _built.clear()


def built_at(module: nn.Module | None) -> Site | None:
    reference, site = _built.get(id(module), (None, None))
    return site if reference is not None and reference() is module else None


def library_built_at(module: nn.Module | None) -> Site | None:
    """The same for layers of torch itself only: in a user's own class the fault lies in its code,
    not where it was made.
    """
    return (
        built_at(module)
        if module is not None and type(module).__module__.startswith("torch.")
        else None
    )


def maker_frame(frame: FrameType | None, module: nn.Module) -> FrameType | None:
    """The frame that called the class: past the module's own chain of __init__ calls."""
    while frame is not None and any(value is module for value in _first_local(frame)):
        frame = frame.f_back
    return frame


def _first_local(frame: FrameType) -> tuple[object, ...]:
    names = frame.f_code.co_varnames
    return (frame.f_locals.get(names[0]),) if names and frame.f_code.co_name == "__init__" else ()

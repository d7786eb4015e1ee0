"""Seeding calls of torch, NumPy and the standard library, and whether the global streams of the
latter two were drawn from.
"""

from __future__ import annotations

import inspect
import random
import sys
from typing import TYPE_CHECKING, Any

import torch

from sawbones.observe.patches import Patches
from sawbones.observe.sites import is_user_file

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    marks: dict[
        str, Any
    ] = {}  # library -> state of its global stream when it was last seeded, or at the start

    def mark(library: str) -> None:
        marks[library] = state_of(library)

    def used() -> dict[str, bool]:
        return {library: state_of(library) != before for library, before in marks.items()}

    recorder.streams_used = used
    for library in ("random", "numpy"):
        mark(library)

    inside = (
        False  # torch.manual_seed seeds the devices itself: that is one call of the user's, not two
    )

    def make(library: str) -> Any:
        def wrap(original: Any) -> Any:
            def seed(*args: Any, **kwargs: Any) -> Any:
                nonlocal inside
                if inside:
                    return original(*args, **kwargs)
                inside = True
                try:
                    result = original(*args, **kwargs)
                finally:
                    inside = False
                if recorder.is_host():
                    if library in marks:
                        recorder.guard("seed", mark, library)
                    given = args[0] if args else kwargs.get("seed", kwargs.get("a"))
                    value = given if isinstance(given, (int, float, str)) else None
                    told = {"library": library, "value": value, "handed": _handed(value)}
                    recorder.guard("seed", recorder.event, "seed", told)
                return result

            return seed

        return wrap

    patches.replace(torch, "manual_seed", make("torch"))
    patches.replace(torch.cuda, "manual_seed_all", make("cuda"))
    patches.replace(random, "seed", make("random"))
    if "numpy" in sys.modules:
        import numpy

        patches.replace(numpy.random, "seed", make("numpy"))


def _handed(value: Any) -> bool:
    """The user's own line gave this value to what it called: the seeding function itself, or a
    library's that passes it on. A library that seeds on its own account was given none.
    """
    callee, caller = sys._getframe(1), sys._getframe(1).f_back
    while caller is not None and not is_user_file(caller.f_code.co_filename):
        callee, caller = caller, caller.f_back
    code = callee.f_code
    num = code.co_argcount + code.co_kwonlyargcount
    num += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    given: list[Any] = []
    for name in code.co_varnames[:num]:
        found = callee.f_locals.get(name)
        given += (
            found if type(found) is tuple else found.values() if type(found) is dict else [found]
        )
    return caller is not None and any(type(g) is type(value) and g == value for g in given)


def state_of(library: str) -> Any:
    """The state of a global stream in a form that compares; reading it draws nothing."""
    if library == "random":
        return random.getstate()
    module = sys.modules.get("numpy")
    if module is None:
        return None
    name, keys, position, *rest = module.random.get_state()
    return (name, keys.tobytes(), position, *rest)

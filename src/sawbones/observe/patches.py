"""Patches: replaced attributes, their originals kept and put back on exit."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


class Patches:
    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._wrappers: list[Any] = []
        self._modules = set(sys.modules)  # that were there before

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """owner.name becomes make(original). Only what the owner itself defines is replaced, so
        restoring is exact.
        """
        if name not in vars(owner):
            return
        original = _standing(vars(owner)[name])
        new = make(original)
        new.__sawbones__ = original
        for attribute in ("__name__", "__qualname__", "__doc__", "__module__", "__wrapped__"):
            value = original if attribute == "__wrapped__" else getattr(original, attribute, None)
            try:
                setattr(new, attribute, value)
            except (AttributeError, TypeError):
                pass
        setattr(owner, name, new)
        self._wrappers.append(new)

        def undo() -> None:
            # Somebody may have patched on top of us: leave theirs alone, it still calls the
            # original through ours, which may come to light again once theirs is gone.
            new.__sawbones_over__ = id(new)
            if vars(owner).get(name) is new:
                setattr(owner, name, _standing(original))

        self._undo.append(undo)

    def on_exit(self, undo: Callable[[], None]) -> None:
        self._undo.append(undo)

    def restore(self) -> None:
        while self._undo:
            self._undo.pop()()
        self._take_back()

    def _take_back(self) -> None:
        """Modules that were imported meanwhile, torch's own among them, may have taken a wrapper
        for what it stands for, and would keep the whole recording.
        """
        ours = {id(new) for new in self._wrappers}
        now = sys.modules.copy()  # in one go: whatever is collected meanwhile may import
        for module in [m for name, m in now.items() if name not in self._modules]:
            for key, value in list(getattr(module, "__dict__", {}).items()):
                if id(value) in ours:
                    setattr(module, key, _standing(value))
        self._wrappers = []
        # the compiler may have made its tables of torch's functions meanwhile
        rules = sys.modules.get("torch._dynamo.trace_rules")
        getattr(rules, "clear_lru_cache", lambda: None)()


def _standing(function: Any) -> Any:
    """Past wrappers of ours whose time is over. (The mark names its owner: `functools.wraps` copies
    it.)
    """
    while getattr(function, "__sawbones_over__", None) == id(function):
        function = function.__sawbones__
    return function

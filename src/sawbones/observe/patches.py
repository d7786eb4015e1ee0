"""Patches: replaced attributes, their originals kept and put back on exit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Patches:
    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """owner.name becomes make(original). Only what the owner itself defines is replaced, so
        restoring is exact.
        """
        if name not in vars(owner):
            return
        original = vars(owner)[name]
        new = make(original)
        new.__sawbones__ = original
        for attribute in ("__name__", "__qualname__", "__doc__", "__module__", "__wrapped__"):
            value = original if attribute == "__wrapped__" else getattr(original, attribute, None)
            try:
                setattr(new, attribute, value)
            except (AttributeError, TypeError):
                pass
        setattr(owner, name, new)

        def undo() -> None:
            # Somebody may have patched on top of us: leave theirs alone, it still calls the
            # original through ours.
            if vars(owner).get(name) is new:
                setattr(owner, name, original)

        self._undo.append(undo)

    def on_exit(self, undo: Callable[[], None]) -> None:
        self._undo.append(undo)

    def restore(self) -> None:
        while self._undo:
            self._undo.pop()()

"""torch as it was when a recording began: what was compiled until then is none of this training, and
functions that differ by now were replaced by the script with its own.

Under a function mode torch calls a function by its name once more, to hand it to the mode: a
script that has put a counter there would count the call twice. The mode goes on with what stood
there before.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch

from sawbones.observe.deep.modules import num_compiled

_OWNERS: tuple[Any, ...] = (torch.nn.functional, torch.functional, torch.Tensor, torch)


class Originals:
    """Made once our own hooks are in their places, before the script goes on."""

    def __init__(self) -> None:
        self._num_compiled = num_compiled()
        self._found = [
            (owner, name, value)
            for owner in _OWNERS
            for name, value in vars(owner).items()
            if isinstance(value, FunctionType)
        ]

    @property
    def has_compiled(self) -> bool:
        """Something, since then."""
        return num_compiled() != self._num_compiled

    def replaced(self) -> dict[Any, Callable[..., Any]]:
        """What the script has put there -> what was there."""
        now = ((vars(owner).get(name), value) for owner, name, value in self._found)
        return {new: old for new, old in now if new is not old and callable(new)}

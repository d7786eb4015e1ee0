"""Functions of torch that the script has replaced with its own.

Under a function mode torch calls a function by its name once more, to hand it to the mode: a
script that has put a counter there would count the call twice. The mode goes on with what stood
there before.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch

_OWNERS: tuple[Any, ...] = (torch.nn.functional, torch.functional, torch.Tensor, torch)
_found: list[tuple[Any, str, FunctionType]] = []


def remember() -> None:
    """Once our own hooks are in their places, before the script goes on."""
    _found[:] = [
        (owner, name, value)
        for owner in _OWNERS
        for name, value in vars(owner).items()
        if isinstance(value, FunctionType)
    ]


def replaced() -> dict[Any, Callable[..., Any]]:
    """What the script has put there -> what was there."""
    now = ((vars(owner).get(name), value) for owner, name, value in _found)
    return {new: old for new, old in now if new is not old and callable(new)}

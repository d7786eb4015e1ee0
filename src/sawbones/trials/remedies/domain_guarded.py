"""One operator of one line is given only what it has a finite answer and a finite gradient for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

from sawbones.trace.operators import spellings
from sawbones.trials.remedies import took_hold

_TINY = 1e-7


def install(recorder: Any, name: str, file: str, line: int) -> None:
    def here(frame: Any) -> bool:
        site = recorder.sites.find(frame)
        if site is None or (site.file, site.line) != (file, line):
            return False
        took_hold(recorder, "domain_guarded")
        return True

    norms = ("norm", "vector_norm")
    names = norms if name in norms else spellings(name)
    for owner in (torch, torch.Tensor, torch.linalg):
        for spelling in names:
            if callable(getattr(owner, spelling, None)):
                setattr(owner, spelling, _make(name, here, getattr(owner, spelling)))


def _make(name: str, here: Callable[[Any], bool], original: Any) -> Any:
    busy = False

    def operator(*args: Any, **kwargs: Any) -> Any:
        nonlocal busy
        if busy or not args or not here(sys._getframe(1)):
            return original(*args, **kwargs)
        busy = True
        try:
            return original(*_guarded(name, args), **kwargs)
        finally:
            busy = False

    return operator


def _positive(x: Any) -> Any:
    return x.clamp(min=_TINY) if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def _apart(x: Any) -> Any:
    """A divisor away from zero, its sign kept."""
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        return x
    return torch.where(x.abs() < _TINY, torch.full_like(x, _TINY), x)


def _guarded(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    if name in ("exp", "expm1", "exp2", "sinh", "cosh"):
        return (args[0].clamp(max=30.0), *args[1:])
    if name in ("acos", "asin", "arccos", "arcsin"):
        return (args[0].clamp(-1.0 + 1e-6, 1.0 - 1e-6), *args[1:])
    if name in ("rdiv", "reciprocal"):
        return (_apart(args[0]), *args[1:])
    if name in ("div", "div_"):
        return (args[0], _apart(args[1]), *args[2:])
    return (_positive(args[0]), *args[1:])

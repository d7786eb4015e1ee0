"""The gradients of log-probabilities that are taken at these lines, turned round: what was made more
likely is made less likely, and the rest of the loss trains as before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.distributions import Distribution
from torch.nn import functional

from sawbones.trials.remedies import took_hold

NAME = "draws_turned"
_OF_DISTRIBUTION = "log_prob"
_TURNED = "_sawbones_turned"


def install(recorder: Any, places: Sequence[Sequence[Any]]) -> None:
    wanted = {(str(file), int(line), str(fn)) for file, line, fn in places}
    for fn in {fn for _, _, fn in wanted}:
        busy: list[str] = []
        for owner in _owners(fn):
            setattr(owner, fn, turning(recorder, getattr(owner, fn), fn, wanted, busy))


def _owners(fn: str) -> Iterable[Any]:
    if fn == _OF_DISTRIBUTION:
        return [Distribution, *(c for c in _below(Distribution) if fn in c.__dict__)]
    return [o for o in (torch, torch.Tensor, functional) if hasattr(o, fn)]


def _below(cls: type) -> set[type]:
    found: set[type] = set(cls.__subclasses__())
    return found.union(*(_below(c) for c in found))


def turning(
    recorder: Any, original: Any, fn: str, wanted: set[tuple[str, int, str]], busy: list[str]
) -> Any:
    def turned(*args: Any, **kwargs: Any) -> Any:
        if busy:  # a distribution asks the one that it is made of
            return original(*args, **kwargs)
        busy.append(fn)
        try:
            result = original(*args, **kwargs)
        finally:
            busy.pop()
        if not isinstance(result, torch.Tensor) or not result.requires_grad:
            return result
        site = recorder.sites.find(sys._getframe(1))
        if site is None or (site.file, site.line, fn) not in wanted:
            return result
        if any(getattr(given, _TURNED, None) == site for given in args):
            return result  # a part of what is turned at this line already
        took_hold(recorder, NAME)
        result.register_hook(torch.neg)
        setattr(result, _TURNED, site)
        return result

    return turned

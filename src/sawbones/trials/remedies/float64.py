"""The model computes in float64, from the same initial weights: converted at its first call, and so
is what goes into it.

Autocast does nothing, and narrowing casts (.float(), .half(), .bfloat16()) widen. Random numbers
are drawn as before.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from sawbones.observe.census import has_parameters
from sawbones.trace.operators import LOSSES
from sawbones.trials.remedies import autocast_off, took_hold


def install(recorder: Any) -> None:
    autocast_off.install(recorder)
    real_call = nn.Module.__call__
    widened: set[int] = set()

    def __call__(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if recorder.depth or not has_parameters(self):
            return real_call(self, *args, **kwargs)
        if id(self) not in widened:
            widened.add(id(self))
            self.double()
            took_hold(recorder, "float64")
        return real_call(self, *_wide(args), **_wide(kwargs))

    def double(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        return self.double() if self.is_floating_point() or not widened else self.to(torch.float64)

    nn.Module.__call__ = __call__  # type: ignore[method-assign]
    for name in ("float", "half", "bfloat16"):
        setattr(torch.Tensor, name, double)
    for name in LOSSES:
        if hasattr(functional, name):
            setattr(functional, name, _alike(getattr(functional, name)))


def _wide(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value
    if type(value) in (tuple, list):
        return type(value)(_wide(v) for v in value)
    return {k: _wide(v) for k, v in value.items()} if type(value) is dict else value


def _alike(original: Any) -> Any:
    def loss(given: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        if (
            isinstance(target, torch.Tensor)
            and target.is_floating_point()
            and isinstance(given, torch.Tensor)
        ):
            target = target.to(given.dtype)
        if isinstance(kwargs.get("weight"), torch.Tensor):
            kwargs["weight"] = kwargs["weight"].to(given.dtype)
        return original(given, target, *args, **kwargs)

    return loss

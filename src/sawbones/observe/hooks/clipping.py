"""Gradient clipping through torch.nn.utils."""

from __future__ import annotations

from collections.abc import Iterable
from types import GeneratorType
from typing import TYPE_CHECKING, Any

import torch

from sawbones.observe.patches import Patches
from sawbones.observe.tracing import is_tracing

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    def make(original: Any) -> Any:
        def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
            given = parameters
            if isinstance(parameters, Iterable) and not isinstance(parameters, torch.Tensor):
                kind = type(parameters)
                given = parameters = list(parameters)  # a generator can be read only once
                if kind is GeneratorType:
                    given = (each for each in parameters)  # torch warns of one that is used up
            result = original(given, *args, **kwargs)
            if recorder.is_host() and recorder.wants("clip") and not is_tracing():
                count = 1 if isinstance(parameters, torch.Tensor) else len(parameters)
                limit = args[0] if args else kwargs.get("max_norm", kwargs.get("clip_value"))
                data: dict[str, Any] = {
                    "fn": original.__name__,
                    "max_norm": _plain(limit),
                    "num_tensors": count,
                }
                recorder.guard("clip", _note, recorder, data, result)
            return result

        return clip

    for name in ("clip_grad_norm_", "clip_grad_value_"):
        made: dict[Any, Any] = {}  # both names stand for one function, and for one wrapper

        def once(original: Any, made: dict[Any, Any] = made) -> Any:
            return made.setdefault(original, make(original))

        for owner in (torch.nn.utils, torch.nn.utils.clip_grad):
            patches.replace(owner, name, once)


def _note(recorder: Recorder, data: dict[str, Any], norm: Any) -> None:
    if isinstance(norm, torch.Tensor):
        recorder.scalars.submit(norm, lambda value: data.__setitem__("norm", value))
    recorder.event("clip", data)


def _plain(value: Any) -> float | None:
    if isinstance(value, torch.Tensor):
        return float(value) if value.device.type == "cpu" else None
    return float(value) if isinstance(value, (int, float)) else None

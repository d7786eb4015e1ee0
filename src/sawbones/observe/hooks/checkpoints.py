"""torch.save and torch.load: what kind of state a checkpoint holds, told from its values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from sawbones.observe.patches import Patches

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    inside = False

    def make_save(original: Any) -> Any:
        def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(obj, f, *args, **kwargs)
            if recorder.is_host() and not inside:
                recorder.guard("save", _note, recorder, "save", obj, f)
            return result

        return save

    def make_load(original: Any) -> Any:
        def load(f: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(f, *args, **kwargs)
            if recorder.is_host() and not inside:
                recorder.guard("load", _note, recorder, "load", result, f)
            return result

        return load

    patches.replace(torch, "save", make_save)
    patches.replace(torch, "load", make_load)


def _note(recorder: Recorder, kind: str, obj: Any, f: Any) -> None:
    name = (
        f
        if isinstance(f, str)
        else getattr(f, "name", None) or (str(f) if hasattr(f, "__fspath__") else "")
    )
    kinds, keys = set(), []
    # A generator's state beside others does not make the whole a generator's state.
    nested = isinstance(obj, Mapping) and any(isinstance(v, Mapping) for v in obj.values())
    if isinstance(obj, Mapping) and (
        state_kind(obj) == "other" or (nested and state_kind(obj) == "rng")
    ):
        for key, value in list(obj.items())[:64]:
            keys.append(str(key))
            kinds.add(state_kind(value, str(key)))
    else:
        kinds.add(state_kind(obj))
    recorder.event(kind, {"path": str(name), "kinds": sorted(kinds), "keys": keys})


def state_kind(value: Any, key: str = "") -> str:
    if isinstance(value, nn.Module):
        return "model"
    if isinstance(value, Mapping):
        names = set(map(str, value))
        if {"state", "param_groups"} <= names:
            return "optimizer"
        if {"growth_factor", "backoff_factor"} <= names:
            return "scaler"
        if "last_epoch" in names or "_step_count" in names:
            return "scheduler"
        tensors = sum(isinstance(v, torch.Tensor) for v in value.values())
        if tensors and tensors >= len(value) * 0.8:
            return (
                "rng"
                if all(_is_rng(v) for v in value.values() if isinstance(v, torch.Tensor))
                else "model"
            )
        if value and any(_is_rng(v) for v in value.values()):
            return "rng"
        return "other"
    if _is_rng(value):
        return "rng"
    if isinstance(value, (list, tuple)) and value and all(_is_rng(v) for v in value):
        return "rng"
    if isinstance(value, int) and not isinstance(value, bool):
        return "step"
    return "other"


def _is_rng(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.dtype is torch.uint8 and value.dim() == 1 and value.numel() in (16, 5056)
    # random.getstate() and numpy.random.get_state()
    return isinstance(value, tuple) and len(value) in (3, 5) and (value[0] in (3, "MT19937"))

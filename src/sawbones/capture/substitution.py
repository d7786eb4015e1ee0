"""Recorded values in the place of live ones: the structure is the live object's, the tensors are
the bundle's.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from sawbones.capture.packing import Missing
from sawbones.observe.fingerprints import tensors_in

_MAX_DEPTH = 8


def put_in_place(live: Any, recorded: Any, problems: list[str]) -> Any:
    return _Placing(problems).put(live, recorded, "")


class _Placing:
    def __init__(self, problems: list[str]) -> None:
        self._problems = problems
        self._made: dict[
            int, torch.Tensor
        ] = {}  # one tensor stays one tensor, however many names it has

    def put(self, live: Any, recorded: Any, path: str) -> Any:
        if isinstance(recorded, Missing):
            return live  # was not kept: what the rebuilt script made is the best there is
        if isinstance(recorded, torch.Tensor):
            return self._tensor(live, recorded, path)
        if isinstance(recorded, Mapping):
            fits = isinstance(live, Mapping) or (
                hasattr(live, "keys") and hasattr(live, "__getitem__")
            )
            return (
                self._mapping(live, recorded, path) if fits else self._wrong(live, recorded, path)
            )
        if isinstance(recorded, (list, tuple)):
            return (
                self._sequence(live, recorded, path)
                if isinstance(live, (list, tuple))
                else self._wrong(live, recorded, path)
            )
        if isinstance(recorded, np.ndarray):
            return recorded.copy() if isinstance(live, np.ndarray) else live
        if isinstance(recorded, (bool, int, float, str)) and isinstance(
            live, (bool, int, float, str)
        ):
            return recorded
        return live

    def _tensor(self, live: Any, recorded: torch.Tensor, path: str) -> Any:
        if live is not None and not isinstance(live, torch.Tensor):
            return self._wrong(live, recorded, path)
        if id(recorded) in self._made:
            return self._made[id(recorded)]
        value = recorded.clone()  # a step may write into its batch
        if live is not None:
            value = value.to(live.device)
            if live.requires_grad and value.dtype.is_floating_point:
                value.requires_grad_()
            if live.is_pinned():
                value = value.pin_memory()
        self._made[id(recorded)] = value
        return value

    def _wrong(self, live: Any, recorded: Any, path: str) -> Any:
        kinds = f"{type(live).__name__} where the bundle has {type(recorded).__name__}"
        self._problems.append(f"batch{path}: the rebuilt script has {kinds}")
        return live

    def _mapping(self, live: Any, recorded: Mapping[Any, Any], path: str) -> Any:
        values = {
            k: self.put(live[k], v, f"{path}[{k!r}]") if k in live else v
            for k, v in recorded.items()
        }
        if type(live) is dict:
            return values
        changed = copy.copy(live)  # a dict with manners: BatchEncoding and its like
        try:
            for key, value in values.items():
                changed[key] = value
        except Exception:
            self._problems.append(f"batch{path}: {type(live).__name__} takes no new values")
            return live
        return changed

    def _sequence(self, live: Any, recorded: Any, path: str) -> Any:
        items = [
            self.put(live[i] if i < len(live) else None, value, f"{path}[{i}]")
            for i, value in enumerate(recorded)
        ]
        if isinstance(live, tuple):
            return type(live)(*items) if hasattr(live, "_fields") else tuple(items)
        return items


def overwrite(live: Any, given: Any) -> Any:
    """New values in the live tensors themselves where that can be: the loop may hold them where no
    name leads to.
    """
    places = dict(tensors_in(live))

    def change(path: str, tensor: torch.Tensor) -> torch.Tensor:
        old = places.get(path)
        if (
            old is None
            or type(old) is not torch.Tensor
            or old.requires_grad
            or (old.dtype, old.device) != (tensor.dtype, tensor.device)
        ):
            return tensor
        old.data = tensor.detach()
        return old

    return map_tensors(given, change)


def map_tensors(
    value: Any, change: Callable[[str, torch.Tensor], torch.Tensor], path: str = "", depth: int = 0
) -> Any:
    """The same structure with every tensor replaced."""
    if isinstance(value, torch.Tensor):
        return change(path, value)
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, (list, tuple)):
        items = [map_tensors(v, change, f"{path}[{i}]", depth + 1) for i, v in enumerate(value)]
        if isinstance(value, tuple):
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        return items
    if isinstance(value, dict) or (hasattr(value, "keys") and hasattr(value, "__setitem__")):
        changed = {} if type(value) is dict else copy.copy(value)
        for key in list(value.keys()):
            changed[key] = map_tensors(value[key], change, f"{path}[{key!r}]", depth + 1)
        return changed
    return value

"""Nested Python values <-> JSON with references to tensors. What JSON has no word for is tagged;
objects are never pickled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sawbones.capture.errors import CaptureError
from sawbones.capture.tensors import storable

_MAX_DEPTH = 24


@dataclass(frozen=True)
class LeftOut:
    """Stands for an object that no bundle can hold."""

    class_name: str


class Packer:
    """pack() turns a value into JSON; the tensors that it met are in `tensors`, by the names that
    the JSON refers to.
    """

    def __init__(self) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self.left_out: list[str] = []
        self._names: dict[int, Any] = {}
        self._alive: list[torch.Tensor] = []  # identities are used again once a tensor is gone

    def pack(self, value: Any, path: str = "", depth: int = 0) -> Any:
        if value is None or isinstance(value, (bool, str)) or type(value) is int:
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"$float": str(value)}
        if isinstance(value, torch.Tensor):
            return self._tensor(value, path)
        if depth > _MAX_DEPTH:
            return self._unknown(value, path)
        if isinstance(value, (np.ndarray, np.generic)):
            return self._array(value, path)
        if isinstance(value, Mapping):
            items = [
                [self.pack(k, path, depth + 1), self.pack(v, f"{path}[{k!r}]", depth + 1)]
                for k, v in value.items()
            ]
            return {"$dict": items}
        if isinstance(value, (list, tuple)):
            inner = [self.pack(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(value)]
            return {"$tuple": inner} if isinstance(value, tuple) else inner
        if isinstance(value, bytes) and len(value) <= 1 << 16:
            return {"$bytes": value.hex()}
        if isinstance(value, int):
            return int(value)
        return self._unknown(value, path)

    def _unknown(self, value: Any, path: str) -> Any:
        name = value.class_name if isinstance(value, LeftOut) else type(value).__name__
        if len(self.left_out) < 100:
            self.left_out.append(f"{path or 'value'}: {name}")
        return {"$object": name[:80]}

    def _array(self, value: Any, path: str) -> Any:
        try:
            tensor = torch.from_numpy(np.ascontiguousarray(value))
        except TypeError:
            return self._unknown(value, path)
        return {"$array": self._tensor(tensor.reshape(np.shape(value)), path)}

    def _tensor(self, tensor: torch.Tensor, path: str) -> Any:
        known = self._names.get(id(tensor))
        if known is not None:
            return known
        plain = tensor.detach()
        reference: dict[str, Any] = {"$tensor": f"t{len(self.tensors)}"}
        if plain.dtype.is_complex:
            plain = torch.view_as_real(plain.resolve_conj())
            reference["complex"] = True
        if not storable(plain):
            return self._unknown(tensor, path)
        if plain.device.type != "cpu":
            reference["device"] = plain.device.type
        self.tensors[reference["$tensor"]] = plain
        self._names[id(tensor)] = reference
        self._alive.append(tensor)
        return reference


class Missing:
    """Stands for an object that is not in the bundle."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


def unpack(value: Any, tensors: Mapping[str, torch.Tensor]) -> Any:
    try:
        return _unpack(value, tensors)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CaptureError(
            f"the bundle's state cannot be read: {type(error).__name__}: {str(error)[:120]}"
        ) from error


def _unpack(value: Any, tensors: Mapping[str, torch.Tensor]) -> Any:
    if isinstance(value, list):
        return [_unpack(v, tensors) for v in value]
    if not isinstance(value, dict):
        return value
    if "$tensor" in value:
        tensor = tensors[value["$tensor"]]
        return torch.view_as_complex(tensor) if value.get("complex") else tensor
    if "$dict" in value:
        return {_unpack(k, tensors): _unpack(v, tensors) for k, v in value["$dict"]}
    if "$tuple" in value:
        return tuple(_unpack(v, tensors) for v in value["$tuple"])
    if "$float" in value:
        return float(value["$float"])
    if "$array" in value:
        return _unpack(value["$array"], tensors).numpy()
    if "$bytes" in value:
        return bytes.fromhex(value["$bytes"])
    return Missing(str(value.get("$object", "?")))

"""Values as Python source: tensors as nested lists where they are small, as packed bytes where they
are not.
"""

from __future__ import annotations

import base64
import inspect
import math
import zlib
from typing import Any

import numpy as np
import torch

from sawbones.capture.operators import Call
from sawbones.observe.fingerprints import raw_bytes

LISTED = 300  # numbers in a tensor that is still written as a list
PACKED_BYTES = 200_000


class Unwritable(Exception):
    """A value that has no form as source."""


def _told(call: Call) -> dict[str, Any]:
    """Keyword arguments that differ from the function's defaults."""
    try:
        defaults = (
            {k: p.default for k, p in inspect.signature(call.func).parameters.items()}
            if call.func is not None
            else {}
        )
    except (TypeError, ValueError):  # built into torch
        return call.kwargs
    return {
        k: v
        for k, v in call.kwargs.items()
        if isinstance(v, torch.Tensor) or k not in defaults or v != defaults[k]
    }


class Writing:
    """The lines that make the tensors, and the code of calls that use them by name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.alive: list[torch.Tensor] = []
        self._packed = False
        self._special = False

    def imports(self) -> list[str]:
        found = (
            ["from base64 import b64decode", "from zlib import decompress"] if self._packed else []
        )
        return [*found, *(["from torch import inf, nan"] if self._special else [])]

    def call(self, call: Call, keep: bool = False) -> str:
        name = call.name
        if not name.startswith("torch.") or "__get__" in name:
            raise Unwritable(f"{name} cannot be called by name")
        given = [self.value(a) for a in call.args] + [
            f"{k}={self.value(v)}" for k, v in _told(call).items()
        ]
        return f"{name}({', '.join(given)})"

    def value(self, value: Any, depth: int = 0) -> str:
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if value is None or isinstance(value, (bool, int, str)) or value is Ellipsis:
            return repr(value) if value is not Ellipsis else "..."
        if isinstance(value, float):
            if not math.isfinite(value):
                self._special = True
            return repr(value)
        if isinstance(value, slice):
            return (
                f"slice({self.value(value.start)}, {self.value(value.stop)}, "
                f"{self.value(value.step)})"
            )
        if isinstance(value, torch.dtype):
            return str(value)
        if isinstance(value, torch.device):
            return f"torch.device({str(value)!r})" if value.type == "cpu" else 'torch.device("cpu")'
        if isinstance(value, (list, tuple)) and depth < 5:
            inner = ", ".join(self.value(v, depth + 1) for v in value)
            return (
                f"[{inner}]"
                if isinstance(value, list)
                else f"({inner}{',' if len(value) == 1 else ''})"
            )
        raise Unwritable(f"an argument is a {type(value).__name__}")

    def tensor(self, tensor: torch.Tensor) -> str:
        known = self.names.get(id(tensor))
        if known is not None:
            return known
        name = f"x{len([n for n in self.names.values() if n.startswith('x')])}"
        self.names[id(tensor)] = name
        self.alive.append(tensor)
        self.lines.append(f"{name} = {self._made(tensor.detach().cpu())}")
        return name

    def _made(self, tensor: torch.Tensor) -> str:
        if tensor.layout is not torch.strided or tensor.is_quantized:
            raise Unwritable("a tensor is sparse or quantized")
        kind = str(tensor.dtype)
        if tensor.numel() and tensor.numel() > 4 and not tensor.is_complex():
            first = tensor.reshape(-1)[0]
            if bool((tensor == first).all()):
                return f"torch.full({tuple(tensor.shape)}, {self._number(first)}, dtype={kind})"
        if tensor.numel() <= LISTED and not tensor.is_complex():
            if not tensor.numel():
                return f"torch.empty({tuple(tensor.shape)}, dtype={kind})"
            return f"torch.tensor({self._nested(tensor)}, dtype={kind})"
        return self._bytes(tensor, kind)

    def _nested(self, tensor: torch.Tensor) -> str:
        return (
            self._number(tensor)
            if tensor.dim() == 0
            else "[" + ", ".join(self._nested(t) for t in tensor) + "]"
        )

    def _number(self, tensor: torch.Tensor) -> str:
        if tensor.dtype is torch.bool or not tensor.is_floating_point():
            return repr(tensor.item())
        number = float(tensor)
        if not math.isfinite(number):
            self._special = True
            return str(number)
        if tensor.dtype is torch.float64:
            return repr(number)
        return str(
            np.float16(number) if tensor.dtype is torch.float16 else np.float32(number)
        )  # the shortest text for these bits

    def _bytes(self, tensor: torch.Tensor, kind: str) -> str:
        plain = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        raw = raw_bytes(plain).tobytes()
        text = base64.b64encode(zlib.compress(raw, 9)).decode()
        if len(text) > PACKED_BYTES:
            raise Unwritable(
                f"an argument of shape {tuple(tensor.shape)} is too large for a script"
            )
        self._packed = True
        return (
            f'torch.frombuffer(bytearray(decompress(b64decode("{text}"))), '
            f"dtype={kind}).reshape({tuple(tensor.shape)})"
        )

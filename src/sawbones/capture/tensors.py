"""Tensors <-> safetensors bytes, one tensor at a time in both directions: a large state is never
held twice.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sawbones.capture.container import parse_json, refuse
from sawbones.observe.fingerprints import raw_bytes

_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
_MAX_TENSORS = 200_000
_MAX_DIMS = 32


def storable(tensor: torch.Tensor) -> bool:
    return (
        tensor.layout is torch.strided
        and tensor.dtype in _NAMES
        and not tensor.is_quantized
        and not tensor.is_meta
    )


def num_bytes(tensors: Mapping[str, torch.Tensor]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors.values())


def write(tensors: Mapping[str, torch.Tensor], put: Callable[[Any], None]) -> None:
    header: dict[str, Any] = {}
    at = 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [at, at + size],
        }
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    put(struct.pack("<Q", len(text)) + text)
    for tensor in tensors.values():
        plain = tensor.detach().to("cpu").contiguous()
        if plain.numel():
            put(raw_bytes(plain))


def read(path: Path, content: bytes) -> dict[str, torch.Tensor]:
    """Everything about the layout is checked first: offsets must tile the data exactly, sizes must
    follow from shapes.
    """
    if len(content) < 8:
        refuse(path, "tensors.safetensors is cut off")
    (length,) = struct.unpack("<Q", content[:8])
    if length > len(content) - 8:
        refuse(path, "tensors.safetensors has a header longer than itself")
    header = parse_json(path, "tensors.safetensors", content[8 : 8 + length])
    if not isinstance(header, dict) or len(header) > _MAX_TENSORS:
        refuse(path, "tensors.safetensors has no usable header")
    header.pop("__metadata__", None)
    base = 8 + length
    found: dict[str, torch.Tensor] = {}
    expected = 0
    for name, entry in sorted(header.items(), key=lambda item: _start(path, item[1])):
        dtype, shape, begin, end = _entry(path, name, entry)
        if begin != expected or end > len(content) - base:
            refuse(path, f"tensor {name[:80]!r} does not lie where it should")
        expected = end
        if end == begin:
            found[name] = torch.empty(shape, dtype=dtype)
        else:
            found[name] = _values(content, dtype, base + begin, end - begin).reshape(shape)
    if expected != len(content) - base:
        refuse(path, "tensors.safetensors holds bytes that belong to no tensor")
    return found


def _values(content: bytes, dtype: torch.dtype, offset: int, size: int) -> torch.Tensor:
    raw = torch.from_numpy(np.frombuffer(content, dtype=np.uint8, offset=offset, count=size).copy())
    return raw.view(dtype) if dtype is not torch.bool else raw != 0


def _start(path: Path, entry: Any) -> int:
    try:
        start = entry["data_offsets"][0]
    except (TypeError, KeyError, IndexError):
        refuse(path, "a tensor has no offsets")
    if type(start) is not int:
        refuse(path, "a tensor has no offsets")
    return start


def _entry(path: Path, name: str, entry: Any) -> tuple[torch.dtype, tuple[int, ...], int, int]:
    dtype = _DTYPES.get(str(entry.get("dtype"))) if isinstance(entry, dict) else None
    shape = entry.get("shape") if isinstance(entry, dict) else None
    offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
    if (
        dtype is None
        or not isinstance(shape, list)
        or not isinstance(offsets, list)
        or len(offsets) != 2
        or len(shape) > _MAX_DIMS
    ):
        refuse(path, f"tensor {name[:80]!r} is not described")
    if any(type(n) is not int or n < 0 for n in (*shape, *offsets)):
        refuse(path, f"tensor {name[:80]!r} has an impossible shape")
    size = torch.empty(0, dtype=dtype).element_size()
    for n in shape:
        size *= n
    if offsets[1] - offsets[0] != size or size > 1 << 60:
        refuse(path, f"tensor {name[:80]!r} has another size than its shape says")
    return dtype, tuple(shape), offsets[0], offsets[1]

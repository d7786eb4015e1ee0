"""Per-sample fingerprints: 64 bits over up to 256 positions of every tensor of a batch, position
mixed in.

A wide row that is zero at nearly all of these positions (a bag of words, a one-hot code) is read in
whole: what tells it from other rows stands elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch

_POSITIONS = 256
_TELLING = 32  # positions with something in them: of fewer, different rows share what is read
_LEAVES = (int, float, str, bool, bytes, type(None), np.ndarray)
_INTEGERS = {2: np.int16, 4: np.int32, 8: np.int64}


@lru_cache(maxsize=64)
def _weights(width: int) -> tuple[Any, Any]:
    """Which columns are read, and an odd 64-bit weight for each. A stream of our own: the host's
    generators stay untouched.
    """
    rng = np.random.default_rng(0x5AB0)
    columns = np.sort(rng.choice(width, _POSITIONS, replace=False)) if width > _POSITIONS else None
    odd = rng.integers(-(2**62), 2**62, size=min(width, _POSITIONS), dtype=np.int64) * 2 + 1
    return columns, odd


@lru_cache(maxsize=4)
def _all_weights(width: int) -> Any:
    """An odd 64-bit weight for every column of a wide row."""
    rng = np.random.default_rng(0x5AB1)
    return rng.integers(-(2**62), 2**62, size=width, dtype=np.int64) * 2 + 1


def sample_hashes(tensor: torch.Tensor) -> Any:
    """One int64 per row of a CPU tensor; equal rows give equal values. NumPy, because small torch
    calls cost five times as much.
    """
    plain = tensor.detach()
    dtype = plain.dtype
    if dtype.is_complex:
        plain = torch.view_as_real(plain)
    elif dtype is torch.bfloat16:  # NumPy knows neither this
        plain = (plain + 0.0).view(torch.int16)
    elif dtype.is_floating_point and plain.element_size() == 1:  # nor these
        plain = plain.view(torch.int8)
    values = plain.numpy()
    flat = values.reshape(values.shape[0], -1)
    columns, weights = _weights(flat.shape[1])
    if columns is None:
        return _mixed(flat, weights)
    read = flat[:, columns]
    hashes = _mixed(read, weights)
    sparse = np.count_nonzero(read, axis=1) < _TELLING
    if sparse.any():
        hashes[sparse] = _mixed(flat[sparse], _all_weights(flat.shape[1]))
    return hashes


def _mixed(flat: Any, weights: Any) -> Any:
    """A sum of products with random odd weights, modulo 2**64: two operators, and rows that differ
    give different sums.
    """
    if flat.dtype.kind == "f":
        flat = (flat + flat.dtype.type(0)).view(
            _INTEGERS[flat.dtype.itemsize]
        )  # -0.0 and 0.0 are the same sample
    return flat.astype(np.int64) @ weights


def raw_bytes(tensor: torch.Tensor) -> memoryview:
    """Of a dense tensor in host memory. A single number may say any stride and count as contiguous
    all the same.
    """
    flat = tensor.detach().contiguous().reshape(-1)
    return flat.as_strided((flat.numel(),), (1,)).view(torch.uint8).numpy().data


def batch_fingerprints(tensors: Sequence[torch.Tensor]) -> tuple[int, ...]:
    """Over all tensors of a batch that share the leading dimension of the first."""
    rows = next((t.shape[0] for t in tensors if t.dim() > 0 and t.shape[0] > 0), 0)
    batch = _second_dimension(tensors, rows)
    total: Any = None
    if (ragged := _ragged(tensors)) is not None:
        total, used = ragged
        rows, tensors = len(total), [t for t in tensors if not any(t is u for u in used)]
    for tensor in tensors:
        if batch is not None and tensor.dim() > 1 and tensor.shape[1] == batch:
            rows, tensor = batch, tensor.transpose(0, 1)
        if (
            tensor.device.type != "cpu"
            or tensor.dim() == 0
            or tensor.shape[0] != rows
            or tensor.numel() == 0
        ):
            continue
        if (
            tensor.layout is not torch.strided
            or tensor.is_quantized
            or type(tensor) is not torch.Tensor
        ):
            continue
        hashes = sample_hashes(tensor)
        total = hashes if total is None else total * 1_000_003 + hashes
    return tuple(total.tolist()) if total is not None else ()


def _ragged(
    tensors: Sequence[torch.Tensor],
) -> tuple[Any, tuple[torch.Tensor, torch.Tensor]] | None:
    """Samples of all lengths one after another, with the places at which they begin: (a hash of
    each, the two tensors).
    """
    whole = [
        t
        for t in tensors[:4]
        if t.dim() == 1 and t.device.type == "cpu" and t.dtype in (torch.int64, torch.int32)
    ]
    if len(whole) < 2 or whole[1].shape[0] < 2 or whole[0].shape[0] <= whole[1].shape[0]:
        return None
    values, starts = (t.detach().numpy().astype(np.int64) for t in whole[:2])
    if (
        starts[0] != 0
        or np.any(np.diff(starts) < 0)
        or starts[-1] > len(values)
        or np.all(starts == 0)
    ):
        return None
    if starts[-1] == len(values):  # the end of the last is among them
        starts = starts[:-1]
    if any(
        t.dim() > 0 and t.shape[0] != len(starts)
        for t in tensors
        if not any(t is u for u in whole[:2])
    ):
        return None  # not a number of samples that the others share
    ends = np.append(starts[1:], len(values))
    place = np.arange(len(values)) - np.repeat(starts, ends - starts)
    running = np.concatenate([[0], np.cumsum(values * _weights(_POSITIONS)[1][place % _POSITIONS])])
    return running[ends] - running[starts], (whole[0], whole[1])


def _second_dimension(tensors: Sequence[torch.Tensor], rows: int) -> int | None:
    """The number of examples where the first tensor has time in front: what all others (lengths,
    labels) are as long as.
    """
    first = next((t for t in tensors if t.dim() > 0 and t.shape[0] > 0), None)
    others = {t.shape[0] for t in tensors if t is not first and t.dim() == 1}
    found = others.pop() if len(others) == 1 else None
    return (
        found
        if first is not None and found != rows and first.dim() > 1 and first.shape[1] == found
        else None
    )


def tensors_in(value: Any, path: str = "", depth: int = 0) -> list[tuple[str, torch.Tensor]]:
    """(path, tensor) of everything inside nested lists, tuples, dicts and attribute bags, in
    order.
    """
    if isinstance(value, torch.Tensor):
        # Inside torch.func transforms a tensor stands for many values at once: it has none that
        # could be read.
        return [] if torch._C._functorch.is_functorch_wrapped_tensor(value) else [(path, value)]
    if depth > 4:
        return []
    found: list[tuple[str, torch.Tensor]] = []
    if isinstance(value, (list, tuple)):
        for i, item in enumerate(value[:64]):
            if item.__class__ is torch.Tensor:
                found.append((f"{path}[{i}]", item))
            elif not isinstance(item, _LEAVES):
                found += tensors_in(item, f"{path}[{i}]", depth + 1)
    elif isinstance(value, Mapping) or (hasattr(value, "keys") and hasattr(value, "__getitem__")):
        for key in list(value.keys())[:64]:
            item = value[key]
            if not isinstance(item, _LEAVES):
                found += tensors_in(item, f"{path}[{key!r}]", depth + 1)
    return found

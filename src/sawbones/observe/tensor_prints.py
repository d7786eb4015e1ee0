"""64-bit fingerprints of whole tensors, with a sketch that says how far apart two tensors of
different fingerprints are.

Every bit of a tensor counts. The sketch is a handful of numbers, linear in the values: the length
of the difference of two sketches is about the length of the difference of the two tensors, so
rounding is told from drift without sending either of them. In host memory NumPy does it in three
passes; on a device nothing waits: the numbers are read once they have come home.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sawbones.observe.statistics.device_buffer import send_home, upload
from sawbones.observe.statistics.measurable import unobserved

COLUMNS = 1024  # values are added up by column first: no temporary as large as the tensor
SKETCH = 8
_MIX = 0x1F3A5D7C9B2E4687
_WHOLE = {
    1: (np.int8, torch.int8),
    2: (np.int16, torch.int16),
    4: (np.int32, torch.int32),
    8: (np.int64, torch.int64),
}


@dataclass(frozen=True)
class Prints:
    """Of a list of tensors, in its order."""

    bits: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.float64]  # per tensor its norm, then its sketch

    def folded(self) -> int:
        """One fingerprint for the whole list."""
        return _fold(self.bits)


class Pending:
    """Fingerprints that may still be on their way from a device."""

    def __init__(self, tensors: Sequence[torch.Tensor | None]) -> None:
        self._bits = np.zeros(len(tensors), np.int64)
        self._numbers = np.zeros((len(tensors), 1 + SKETCH))
        self._away: list[tuple[list[int], torch.Tensor, torch.Tensor, torch.cuda.Event]] = []
        on_device: dict[torch.device, list[int]] = {}
        with unobserved():
            for i, tensor in enumerate(tensors):
                if tensor is None or tensor.numel() == 0 or not _is_plain(tensor):
                    continue
                if tensor.device.type == "cpu":
                    self._bits[i], self._numbers[i] = _host(tensor.detach())
                elif tensor.device.type == "cuda":
                    on_device.setdefault(tensor.device, []).append(i)
            for device, where in on_device.items():
                self._away.append((where, *_device(device, [tensors[i].detach() for i in where])))  # type: ignore[union-attr]

    def done(self) -> bool:
        return all(event.query() for *_, event in self._away)

    def read(self) -> Prints:
        """Only once done."""
        for where, bits, numbers, _ in self._away:
            self._bits[where], self._numbers[where] = bits.numpy(), numbers.numpy()
        self._away = []
        return Prints(self._bits, self._numbers)


def _is_plain(tensor: torch.Tensor) -> bool:
    kind = type(tensor)
    ordinary = (
        kind in (torch.Tensor, torch.nn.Parameter)
        or kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__
    )
    return (
        ordinary
        and tensor.layout is torch.strided
        and not tensor.is_quantized
        and tensor.data_ptr() != 0
    )


@lru_cache(maxsize=1)
def _weights() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Odd 64-bit weights and signs by column, twice as many: the end of a tensor has its own. A
    stream of our own.
    """
    rng = np.random.default_rng(0x5AB1)
    odd = rng.integers(-(2**62), 2**62, size=2 * COLUMNS, dtype=np.int64) * 2 + 1
    return odd, rng.choice(np.array([-1, 1], np.float32), 2 * COLUMNS)


def _fold(bits: npt.NDArray[np.int64]) -> int:
    odd = _weights()[0]
    total = np.int64(0)
    with np.errstate(over="ignore"):
        for start in range(0, len(bits), len(odd)):
            part = bits[start : start + len(odd)]
            total = total * np.int64(_MIX) + np.sum(part * odd[: len(part)], dtype=np.int64)
    return int(total)


def _host(tensor: torch.Tensor) -> tuple[np.int64, list[float]]:
    flat = tensor.reshape(-1)
    if flat.dtype.is_complex:
        flat = torch.view_as_real(flat).reshape(-1)
    whole = (
        flat.view(_WHOLE[flat.element_size()][1]).numpy()
        if flat.dtype is not torch.bool
        else flat.numpy().view(np.int8)
    )
    odd, signs = _weights()
    size = len(whole) // COLUMNS * COLUMNS
    rest = whole[size:]
    with np.errstate(all="ignore"):
        bits = np.dot(rest.astype(np.int64), odd[COLUMNS : COLUMNS + len(rest)]) + np.int64(
            len(whole)
        ) * np.int64(_MIX)
        if size:
            body, columns = whole[:size], COLUMNS
            if body.dtype.itemsize == 4:  # two at once: half as many additions
                body, columns = body.view(np.int64), COLUMNS // 2
            bits = bits + np.dot(body.reshape(-1, columns).sum(0, dtype=np.int64), odd[:columns])
        values = _numbers(flat)
        sums = values[size:] * signs[COLUMNS : COLUMNS + len(rest)]
        sketch = np.bincount(np.arange(len(rest)) % SKETCH, sums, SKETCH)
        if size:
            by_column = values[:size].reshape(-1, COLUMNS).sum(0) * signs[:COLUMNS]
            sketch = sketch + by_column.reshape(-1, SKETCH).sum(0)
        norm = float(np.sqrt(np.dot(values, values)))
    return np.int64(bits), [norm, *sketch.tolist()]


def _numbers(flat: torch.Tensor) -> npt.NDArray[Any]:
    if flat.dtype in (torch.float32, torch.float64):
        return flat.numpy()
    return (flat.float() if flat.dtype.is_floating_point else flat.double()).numpy()


def _device(
    device: torch.device, tensors: Sequence[torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor, torch.cuda.Event]:
    """The same on a device, enqueued behind what is there; its values differ from those in host
    memory, as ranks never mix.
    """
    host_odd, host_signs = _weights()
    odd, signs = upload(host_odd, device), upload(host_signs, device)
    bits, numbers = [], []
    for tensor in tensors:
        flat = tensor.reshape(-1)
        if flat.dtype.is_complex:
            flat = torch.view_as_real(flat).reshape(-1)
        whole = flat.view(_WHOLE[flat.element_size()][1])
        values = (
            flat.float() if not flat.dtype.is_floating_point or flat.element_size() == 1 else flat
        )
        size = len(flat) // COLUMNS * COLUMNS
        rest = len(flat) - size
        own = (whole[size:].long() * odd[COLUMNS : COLUMNS + rest]).sum()
        columns = torch.zeros(COLUMNS, device=device)
        columns[:rest] = values[size:].float() * signs[COLUMNS : COLUMNS + rest]
        if size:
            own = (
                own
                + (whole[:size].view(-1, COLUMNS).sum(0, dtype=torch.int64) * odd[:COLUMNS]).sum()
            )
            columns = (
                columns
                + values[:size].view(-1, COLUMNS).sum(0, dtype=torch.float32) * signs[:COLUMNS]
            )
        bits.append(own)
        norm = torch.linalg.vector_norm(values, dtype=torch.float32)
        numbers.append(torch.cat([norm.view(1), columns.view(-1, SKETCH).sum(0)]))
    home, _ = send_home(torch.stack(bits))
    sketches, event = send_home(torch.stack(numbers).double())
    return home, sketches, event

"""The way to the device and back without waiting: pinned uploads, asynchronous copies home, reading
them later.

This is the one file that may wait for a device, and only `Reading.wait` does.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

_MAX_TABLES = 8
_MAX_FREE = 64  # buffers of one shape that wait to be used again

Columns = Mapping[
    str, tuple[Sequence[int], npt.NDArray[Any]]
]  # statistic -> (which of the lane's tensors, values)


@dataclass(slots=True)
class Reading:
    """Numbers under way. `columns` may be called once `done`; with no event they were there from
    the start.
    """

    positions: Sequence[int]  # of the lane's tensors among all
    columns: Callable[[], Columns]
    event: torch.cuda.Event | None
    give_back: Callable[[], None] | None = (
        None  # its numbers were copied: the buffer may be used again
    )

    def done(self) -> bool:
        return self.event is None or bool(self.event.query())

    def wait(self) -> None:
        if self.event is not None:
            self.event.synchronize()


def upload(values: npt.NDArray[Any], device: torch.device) -> torch.Tensor:
    """Copied from pinned memory, so the host does not wait. torch's pinned allocator holds the
    block back until the
    copy has run: a fresh block each time needs no ring of buffers."""
    pinned = torch.empty(
        values.shape, dtype=_TORCH_DTYPES[values.dtype], device="cpu", pin_memory=True
    )
    pinned.numpy()[...] = values
    return pinned.to(device, non_blocking=True)


def send_home(values: torch.Tensor) -> tuple[torch.Tensor, torch.cuda.Event]:
    """The values in pinned memory, to be read after the event."""
    pinned = torch.empty(values.shape, dtype=values.dtype, device="cpu", pin_memory=True)
    pinned.copy_(values, non_blocking=True)
    event = torch.cuda.Event()
    event.record(current_stream(values.device))
    return pinned, event


class HomeBuffers:
    """For what is sent home on every step: pinned memory and events that are used again, since
    making them takes longer than
    the copy. The thread that reads gives them back."""

    def __init__(self) -> None:
        self._free: list[tuple[torch.Tensor, npt.NDArray[Any], torch.cuda.Event]] = []

    def send(
        self, values: torch.Tensor, stream: torch.cuda.Stream
    ) -> tuple[npt.NDArray[Any], torch.cuda.Event, Callable[[], None]]:
        """The buffer, when it may be read, and what to call once it was. `stream` is the current
        one.
        """
        try:
            held = self._free.pop()
        except IndexError:
            pinned = torch.empty(values.shape, dtype=values.dtype, device="cpu", pin_memory=True)
            held = pinned, pinned.numpy(), torch.cuda.Event()
        held[0].copy_(values, non_blocking=True)
        held[2].record(stream)
        return (
            held[1],
            held[2],
            lambda: self._free.append(held) if len(self._free) < _MAX_FREE else None,
        )


_streams: dict[tuple[int, int, int], torch.cuda.Stream] = {}


def current_stream(device: torch.device) -> torch.cuda.Stream:
    """As torch.cuda.current_stream: the objects are kept, since making one takes longer than
    launching a kernel.
    """
    index = device.index if device.index is not None else torch.cuda.current_device()
    key = torch._C._cuda_getCurrentStream(index)
    stream = _streams.get(key)
    if stream is None:
        if len(_streams) >= _MAX_FREE:  # a script that makes streams without end
            _streams.clear()
        stream = _streams[key] = torch.cuda.current_stream(index)
    return stream


def on_device(device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """As torch.cuda.device, and nothing where that is the current device already, as it nearly
    always is.
    """
    return _NOTHING if torch.cuda.current_device() == device.index else torch.cuda.device(device)


_NOTHING = contextlib.nullcontext()


class AddressTable:
    """Addresses of a group of tensors in device memory, uploaded only when they are new: the
    caching allocator gives gradients
    the same places step after step, or takes a few sets of places in turn."""

    def __init__(self, num_tensors: int, device: torch.device) -> None:
        self.on_device = torch.zeros(num_tensors, dtype=torch.int64, device=device)
        self.aligned = True
        self._device = device
        self._known: dict[tuple[int, ...], tuple[torch.Tensor, bool]] = {}

    def update(self, addresses: Sequence[int]) -> None:
        key = tuple(addresses)
        held = self._known.get(key)
        if held is None:
            table = np.array(addresses, np.int64)
            held = upload(table, self._device), not bool((table % 16).any())
            if len(self._known) >= _MAX_TABLES:
                del self._known[next(iter(self._known))]
            self._known[key] = held
        self.on_device, self.aligned = held


_TORCH_DTYPES = {
    np.dtype(np.int32): torch.int32,
    np.dtype(np.int64): torch.int64,
    np.dtype(np.float32): torch.float32,
    np.dtype(np.float64): torch.float64,
}

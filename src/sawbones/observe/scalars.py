"""Scalars of the host (losses, norms, scales) read without waiting for a device."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

import torch

from sawbones.observe.statistics.device_buffer import current_stream

_RING = 256


class ScalarReader:
    """submit(tensor, deliver): on the CPU `deliver` runs at once; on a device once the copy has
    arrived.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[Any, torch.Tensor, Callable[[Any], None]]] = deque()
        self._rings: dict[
            tuple[torch.dtype, torch.device], list[tuple[torch.Tensor, torch.cuda.Event]]
        ] = {}
        self._next = 0
        self.num_submitted = 0

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    def submit(self, value: Any, deliver: Callable[[float], None]) -> None:
        if not isinstance(value, torch.Tensor):
            deliver(float(value) if value is not None else math.nan)
            return
        tensor = value.detach()
        if tensor.is_nested:
            tensor = torch.cat([part.reshape(-1) for part in tensor.unbind()])
        elif tensor.layout is not torch.strided:  # no number at all would look like a loss of NaN
            tensor = tensor.to_dense()
        if tensor.numel() != 1:
            tensor = tensor.float().mean()
        if tensor.device.type == "cpu":
            deliver(float(tensor))
            return
        if hasattr(
            tensor, "to_local"
        ):  # a DTensor: its local part, so that no collective is started
            tensor = tensor.to_local()
        ring = self._rings.get((tensor.dtype, tensor.device))
        if ring is None:  # one for each type: copying without conversion launches no kernel
            places = torch.empty(_RING, dtype=tensor.dtype, pin_memory=True).unbind()
            ring = self._rings[tensor.dtype, tensor.device] = [
                (place, torch.cuda.Event()) for place in places
            ]
        if len(self._waiting) >= _RING - 1:
            self.poll()
        if len(self._waiting) >= _RING - 1:
            # the device is far behind: give this one up rather than wait
            _, slot, given_up = self._waiting.popleft()
            given_up([0.0] * slot.numel() if slot.dim() else math.nan)
        self.num_submitted += 1
        slot, event = ring[self._next % _RING]
        self._next += 1
        slot.copy_(tensor if not tensor.dim() else tensor.reshape(()), non_blocking=True)
        event.record(current_stream(tensor.device))
        self._waiting.append((event, slot, deliver))

    def submit_all(self, values: torch.Tensor, deliver: Callable[[list[float]], None]) -> None:
        """Of a small table all numbers, row by row: now and then, as it takes memory of its own."""
        table = values.detach().reshape(-1)
        if table.device.type == "cpu":
            deliver(table.tolist())
            return
        place = torch.empty(table.shape, dtype=table.dtype, pin_memory=True)
        place.copy_(table, non_blocking=True)
        event = torch.cuda.Event()
        event.record(current_stream(table.device))
        self.num_submitted += 1
        self._waiting.append((event, place, deliver))

    def poll(self) -> None:
        while self._waiting and self._waiting[0][0].query():
            _, slot, deliver = self._waiting.popleft()
            deliver(slot.tolist())

    def drain(self) -> None:
        """The end of the run: the only place that waits."""
        while self._waiting:
            event, slot, deliver = self._waiting.popleft()
            event.synchronize()
            deliver(slot.tolist())

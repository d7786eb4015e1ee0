"""Statistics of the tensors on one CUDA device by the fused kernel: gradients on every step,
parameters and updates on every step or, where steps are short, as often as the budget allows.

Updates are differences from a copy of the parameters, refreshed in the pass that measures them. The
copy lives from step to step, so an update is what changed since the last step's end, by whoever
changed it. Where the copy would take too much of the free memory, it is made on sampled steps only
and given back.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from sawbones.observe.statistics import triton_kernel
from sawbones.observe.statistics.device_budget import DeviceBudget
from sawbones.observe.statistics.device_buffer import (
    AddressTable,
    Columns,
    HomeBuffers,
    Reading,
    current_stream,
    on_device,
    upload,
)
from sawbones.observe.statistics.measurable import (
    fills_its_memory,
    measurable,
    smallest_normal,
    unobserved,
)
from sawbones.schema.run import TENSOR_STATISTICS

# of the device memory that is free when watching begins; Adam will want twice the parameters yet
KEPT_COPY_SHARE = 0.2
PASSING_COPY_SHARE = 0.5  # for one step

_GRADIENT_ROWS, _PARAMETER_ROW, _UPDATE_ROW = range(5), 5, 6
_ORDINARY = frozenset((torch.Tensor, torch.nn.Parameter))
_TYPE = operator.attrgetter(
    "dtype", "layout", "is_cuda"
)  # a model may have been moved to the host since
_NUMEL, _IS_CONTIGUOUS, _ADDRESS = (
    torch.Tensor.numel,
    torch.Tensor.is_contiguous,
    torch.Tensor.data_ptr,
)
_NUM_BYTES = operator.attrgetter("nbytes")
_MAX_KNOWN = 16  # sets of addresses
_LOOKED_AT_EVERY = 8


class _Group:
    """The lane's tensors of one dtype."""

    def __init__(
        self, dtype: torch.dtype, members: list[int], numels: list[int], device: torch.device
    ) -> None:
        self.dtype = dtype
        self._types = frozenset(((dtype, torch.strided, True),))
        self.members = members
        self.numels = numels
        self._sizes = [numel * dtype.itemsize for numel in numels]
        self._known: dict[
            tuple[int, ...], int
        ] = {}  # addresses at which everything was in order -> times met again
        self.device = device
        self.table = triton_kernel.ChunkTable(dtype, numels, members, device)
        self.gradients = AddressTable(len(members), device)
        self.parameters = AddressTable(len(members), device)
        self.copies: AddressTable | None = None
        self._copy: torch.Tensor | None = None
        starts = np.cumsum(
            [0] + [-(-numel // 16) * 16 for numel in numels]
        )  # every copy begins aligned
        self._starts, self._copy_numel = starts[:-1], int(starts[-1])

    @property
    def copy_bytes(self) -> int:
        return self._copy_numel * self.dtype.itemsize

    def make_copy(self) -> None:
        self._copy = torch.empty(self._copy_numel, dtype=self.dtype, device=self.device)
        self.copies = AddressTable(len(self.members), self.device)
        self.copies.update((self._copy.data_ptr() + self._starts * self.dtype.itemsize).tolist())

    def drop_copy(self) -> None:
        self._copy = self.copies = None

    def addresses(
        self, tensors: Sequence[torch.Tensor | None], alive: list[torch.Tensor]
    ) -> Sequence[int]:
        """Where each member's values lie, 0 where there is nothing to measure. What had to be made
        contiguous for this
        is put into `alive`, to be held until the kernels are launched."""
        own: Sequence[Any] = (
            tensors if len(tensors) == len(self.members) else [tensors[i] for i in self.members]
        )
        places = self._ordinary_places(own)
        if places is not None:
            return places
        found = []
        for tensor, numel in zip(own, self.numels, strict=True):
            if tensor is None:
                found.append(0)
                continue
            if (
                type(tensor) not in _ORDINARY
                or tensor.layout is not torch.strided
                or tensor.dtype is not self.dtype
                or not tensor.is_cuda
                or tensor.numel() != numel
                or not tensor.is_contiguous()
            ):
                plain = measurable(tensor)
                if (
                    plain is None
                    or plain.dtype is not self.dtype
                    or plain.numel() != numel
                    or not plain.is_cuda
                ):
                    found.append(0)
                    continue
                if not fills_its_memory(plain):
                    plain = plain.contiguous()
                    alive.append(plain)
                tensor = plain
            found.append(tensor.data_ptr())
        return found

    def _ordinary_places(self, tensors: Sequence[Any]) -> tuple[int, ...] | None:
        """The addresses, if each tensor is as expected. Looked at on every step, since an address
        with the wrong extent would be read out of bounds; by maps, since one tensor after the other
        would take four times as long. What lies where tensors have lain before is only asked for
        its extent, and that now and then: a gradient is as large as its parameter, whose
        size an optimizer's own state does not let change."""
        try:
            places = tuple(map(_ADDRESS, tensors))
        except (TypeError, RuntimeError):  # no gradient, or one without memory of its own
            return None
        met = self._known.get(places)
        if met is not None:
            self._known[places] = met + 1
            if met % _LOOKED_AT_EVERY:
                return places
            return (
                places
                if list(map(_NUM_BYTES, tensors)) == self._sizes
                and all(map(_IS_CONTIGUOUS, tensors))
                else None
            )
        if not (
            _ORDINARY.issuperset(map(type, tensors))
            and self._types.issuperset(map(_TYPE, tensors))
            and list(map(_NUMEL, tensors)) == self.numels
            and all(map(_IS_CONTIGUOUS, tensors))
        ):
            return None
        if len(self._known) >= _MAX_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[places] = 0
        return places


class DeviceLane:
    waits = True

    def __init__(
        self, device: torch.device, positions: Sequence[int], params: Sequence[torch.Tensor]
    ) -> None:
        self.positions = positions
        self._device = device
        self._rows: list[int] = []
        self._thresholds: dict[float, torch.Tensor] = {}
        self._stream: torch.cuda.Stream | None = None
        self._event: torch.cuda.Event | None = (
            None  # of the latest pass, on whichever stream it ran
        )
        self._side: torch.cuda.Stream | None = None
        self._is_aside = False
        self._home = HomeBuffers()
        self._budget = DeviceBudget()
        self._takes_parameters = True  # on the step in progress
        self._copied_at = -1  # step at whose end the copy was last refreshed
        members: dict[torch.dtype, list[int]] = {}
        plain = [measurable(p) for p in params]
        for i, tensor in enumerate(plain):
            if tensor is not None:
                members.setdefault(tensor.dtype, []).append(i)
        with torch.cuda.device(device):
            self._results = torch.empty(
                (len(TENSOR_STATISTICS), len(params)), dtype=torch.float32, device=device
            )
            self._groups = [
                _Group(
                    dtype,
                    which,
                    [tensor.numel() for i in which if (tensor := plain[i]) is not None],
                    device,
                )
                for dtype, which in members.items()
            ]
            self._keeps_copy = self._room_for_copy(KEPT_COPY_SHARE)

    def begin(
        self,
        params: Sequence[torch.Tensor],
        grads: Sequence[torch.Tensor | None],
        full: bool | None,
        due: bool,
        half_tiny: float | torch.Tensor | None,
    ) -> None:
        self._rows = []
        if torch.cuda.is_current_stream_capturing():
            return  # launched now, our kernels would become part of the user's graph
        with on_device(self._device):
            self._follow_stream()
            self._budget.step_begins()
            start = self._budget.start()
            alive: list[torch.Tensor] = []
            for group in self._groups:
                group.gradients.update(group.addresses(grads, alive))
                threshold = self._threshold(smallest_normal(group.dtype, half_tiny))
                triton_kernel.measure_gradients(
                    group.table, group.gradients, threshold, self._results
                )
                del alive[:]
            self._budget.end("gradients", start)
            self._rows.extend(_GRADIENT_ROWS)
            full = due if full is None else full
            self._takes_parameters = full or self._budget.is_turn
            if self._keeps_copy:
                if self._takes_parameters:
                    self._copy_parameters(params, renew=self._copied_at != self._budget.step - 1)
            elif full and self._room_for_copy(PASSING_COPY_SHARE):
                self._copy_parameters(params)

    def finish(self, params: Sequence[torch.Tensor], aside: bool) -> None:
        if not self._rows or not self._takes_parameters or torch.cuda.is_current_stream_capturing():
            return
        with unobserved(), on_device(self._device):
            self._follow_stream()
            # A copy that is given back would have to outlive the other stream, and what is timed
            # runs alone.
            self._is_aside = aside and self._keeps_copy and not self._budget.is_calibrating
            if not self._is_aside:
                start = self._budget.start()
                self._measure_parameters(params)
                self._budget.end("parameters", start)
                return
            with torch.cuda.stream(self._other_stream()):
                self._measure_parameters(params)

    def _measure_parameters(self, params: Sequence[torch.Tensor]) -> None:
        alive: list[torch.Tensor] = []
        compared = all(group.copies is not None for group in self._groups)
        stored = compared and self._keeps_copy and self._budget.every == 1
        if stored:
            self._copied_at = self._budget.step
        for group in self._groups:
            group.parameters.update(group.addresses(params, alive))
            triton_kernel.measure_parameters(
                group.table,
                group.parameters,
                group.copies if compared else None,
                self._results,
                compare=compared,
                store=stored,
            )
            del alive[:]
            if not self._keeps_copy:
                group.drop_copy()
        self._rows.append(_PARAMETER_ROW)
        if compared:
            self._rows.append(_UPDATE_ROW)

    def _other_stream(self) -> torch.cuda.Stream:
        """Behind everything that the current stream has been given so far. What both streams use
        (results, tables, the copy) is written by the current one only after it has waited for the
        event of this pass, in `begin`; the memory of all of it
        is freed and used again behind that wait, too, so the allocator need not be told."""
        if self._side is None:
            self._side = torch.cuda.Stream(self._device)
        self._side.wait_stream(current_stream(self._device))
        return self._side

    def host_norms(self) -> None:
        return None

    def collect(self) -> Reading:
        if not self._rows or torch.cuda.is_current_stream_capturing():
            return Reading(self.positions, dict, None)
        rows = list(self._rows)
        everyone = range(len(self.positions))
        with unobserved(), on_device(self._device):
            if self._is_aside and self._side is not None:
                with torch.cuda.stream(self._side):
                    values, event, give_back = self._home.send(self._results, self._side)
            else:
                values, event, give_back = self._home.send(
                    self._results, current_stream(self._device)
                )
        self._event = event

        def cut() -> Columns:
            return {TENSOR_STATISTICS[row]: (everyone, values[row]) for row in rows}

        return Reading(self.positions, cut, event, give_back)

    def _copy_parameters(self, params: Sequence[torch.Tensor], renew: bool = False) -> None:
        alive: list[torch.Tensor] = []
        try:
            for group in self._groups:
                if group.copies is None or renew:
                    if group.copies is None:
                        group.make_copy()
                    group.parameters.update(group.addresses(params, alive))
                    triton_kernel.measure_parameters(
                        group.table,
                        group.parameters,
                        group.copies,
                        self._results,
                        compare=False,
                        store=True,
                    )
                    del alive[:]
        except torch.OutOfMemoryError:
            self._keeps_copy = False
            for group in self._groups:
                group.drop_copy()

    def _room_for_copy(self, share: float) -> bool:
        # Only what the driver has free counts: memory that torch caches is what the next forward
        # pass will want.
        free, _ = torch.cuda.mem_get_info(self._device)
        return sum(group.copy_bytes for group in self._groups) <= share * free

    def _threshold(self, value: float | torch.Tensor) -> torch.Tensor:
        if isinstance(value, torch.Tensor):
            return value.to(device=self._device, dtype=torch.float64, non_blocking=True).reshape(1)
        if value not in self._thresholds:
            self._thresholds[value] = upload(np.array([value], np.float64), self._device)
        return self._thresholds[value]

    def _follow_stream(self) -> None:
        """Our buffers are ordered by the stream the optimizer runs on; when that changes, or the
        last pass ran aside, the
        stream waits on the device for that pass."""
        current = current_stream(self._device)
        if self._event is not None and (self._is_aside or self._stream != current):
            current.wait_event(self._event)
        self._is_aside = False
        self._stream = current

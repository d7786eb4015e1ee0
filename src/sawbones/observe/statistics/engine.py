"""The statistics engine: called around each optimizer step, hands back one record per step, some
steps later.

On a CUDA device everything is taken on every step and nothing waits. On a CPU every step has the L2
norm of each gradient; the other columns come on full steps: the first few, one in `full_every`, and
at once when a norm turns non-finite, zero or ten times its running median.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from sawbones.observe.statistics.device_buffer import Reading, send_home
from sawbones.observe.statistics.foreach_lane import ForeachLane
from sawbones.observe.statistics.measurable import FLOAT16_TINY, measurable, unobserved
from sawbones.schema.run import NO_GRADIENT, NOT_MEASURED, TENSOR_STATISTICS

MAX_PLANS = 8  # parameter lists remembered: one for each optimizer of an ordinary script


@dataclass(frozen=True, slots=True)
class TensorStatistics:
    """One step. A column is missing when no tensor was measured for it; single tensors hold
    NOT_MEASURED or, in the
    gradient columns, NO_GRADIENT. A DTensor is measured by this rank's shard."""

    step: int
    columns: dict[str, npt.NDArray[np.float32]]


class _Lane(Protocol):
    """Tensors of one device, measured together."""

    positions: Sequence[int]

    def begin(
        self,
        params: Sequence[torch.Tensor],
        grads: Sequence[torch.Tensor | None],
        full: bool | None,
        due: bool,
        half_tiny: float | torch.Tensor | None,
    ) -> None: ...

    def finish(self, params: Sequence[torch.Tensor], aside: bool) -> None: ...

    def collect(self) -> Reading: ...

    def host_norms(self) -> list[float] | npt.NDArray[np.float32] | None: ...

    waits: bool  # its finish() may come later, beside other work of the device


class _Plan:
    """How one list of parameters is measured."""

    def __init__(self, params: Sequence[torch.Tensor]) -> None:
        self.steps = 0
        self._owner = weakref.ref(params[0]) if len(params) else None
        devices: dict[torch.device, list[int]] = {}
        for i, param in enumerate(params):
            plain = measurable(param)
            if plain is not None:
                devices.setdefault(plain.device, []).append(i)
        self.lanes = [
            _lane(device, where, [params[i] for i in where]) for device, where in devices.items()
        ]

    def alive(self) -> bool:
        return self._owner is not None and self._owner() is not None


@dataclass(slots=True)
class Measurement:
    """Of one step, under way or there. `result` puts it together: the writer's thread does, where
    there is one.
    """

    step: int
    num_tensors: int
    without_gradient: list[int]
    layout: int | None  # of the parameters as they were then: they may be others when it arrives
    scale: float | torch.Tensor | None  # in pinned memory where it is a tensor
    readings: list[Reading]

    def done(self) -> bool:
        return all(reading.done() for reading in self.readings)

    def wait(self) -> None:
        for reading in self.readings:
            reading.wait()

    def result(self) -> TensorStatistics:
        columns: dict[str, npt.NDArray[np.float32]] = {}
        for reading in self.readings:
            everyone = len(reading.positions) == self.num_tensors
            for name, (where, values) in reading.columns().items():
                if everyone and len(where) == self.num_tensors and values.dtype == np.float32:
                    columns[name] = values.copy()  # the ordinary case, and much the quickest
                    continue
                column = columns.get(name)
                if column is None:
                    column = columns[name] = np.full(self.num_tensors, NOT_MEASURED, np.float32)
                with np.errstate(over="ignore", invalid="ignore"):
                    column[np.asarray(reading.positions)[where]] = values
            if reading.give_back is not None:
                reading.give_back()
        self._divide(columns)
        if (
            self.num_tensors and len(self.without_gradient) == self.num_tensors
        ):  # no lane had a gradient to make a column of
            for name in TENSOR_STATISTICS:
                if name.startswith("grad_"):
                    columns[name] = np.full(self.num_tensors, NO_GRADIENT, np.float32)
        elif self.without_gradient:
            for name, column in columns.items():
                if name.startswith("grad_"):
                    column[self.without_gradient] = NO_GRADIENT
        return TensorStatistics(
            self.step, {name: columns[name] for name in TENSOR_STATISTICS if name in columns}
        )

    def _divide(self, columns: dict[str, npt.NDArray[np.float32]]) -> None:
        if self.scale is None:
            return
        scale = float(self.scale)
        for name in ("grad_l2", "grad_max"):
            if name in columns:
                column = columns[name]
                with np.errstate(all="ignore"):
                    columns[name] = np.where(column < 0, column, column / np.float32(scale))


class StatisticsEngine:
    def __init__(self, full_every: int = 50, full_first: int = 3) -> None:
        self._full_every = max(1, full_every)
        self._full_first = full_first
        self._plans: dict[tuple[int, ...], _Plan] = {}
        self._latest: tuple[int, _Plan] | None = None
        self._open: Measurement | None = None
        self._lanes: Sequence[_Lane] = ()  # of the open record; one that is closed holds no copies
        self._later: Sequence[torch.Tensor] | None = (
            None  # parameters of the open record, still to be measured
        )
        self._under_way: deque[Measurement] = deque()

    def before_step(
        self,
        step: int,
        params: Sequence[torch.Tensor],
        grads: Sequence[torch.Tensor | None],
        full: bool | None = None,
        scale: float | torch.Tensor | None = None,
        unscaled_from: float | torch.Tensor | None = None,
        layout: int | None = None,
    ) -> None:
        """`full`: None leaves the choice to the schedule and to what the norms show. `scale`: the
        loss scale that the gradients still carry; norms and maxima are divided by it.
        `unscaled_from`: the loss scale they carried before they were unscaled. Either of these two
        says that the backward pass ran in float16, so subnormal is judged as
        float16 saw it. `layout`: a number that stands for this very list of parameters."""
        if self._open is not None and self._open.step == step and self._later is None:
            self._open = None  # another backward pass of this step: the last one is what counts
        self._close()
        with unobserved():
            if (
                layout is None
                or self._latest is None
                or self._latest[0] != layout
                or not self._latest[1].alive()
            ):
                self._latest = -1 if layout is None else layout, self._plan(params)
            plan = self._latest[1]
            due = plan.steps < self._full_first or step % self._full_every == 0
            plan.steps += 1
            without = [i for i, grad in enumerate(grads) if grad is None]
            self._open = Measurement(step, len(params), without, layout, *_keep(scale))
            self._lanes = plan.lanes
            half_tiny = _half_tiny(scale, unscaled_from)
            for lane in plan.lanes:
                where = lane.positions
                whole = len(where) == len(params)
                lane.begin(
                    params if whole else [params[i] for i in where],
                    grads if whole else [grads[i] for i in where],
                    full,
                    due,
                    half_tiny,
                )

    def can_be_brief(self, num_tensors: int) -> bool:
        """Whether all of them lie in one lane that can tell their norms alone."""
        if (
            self._latest is None
            or self._open is not None
            or self._under_way
            or not self._latest[1].alive()
        ):
            return False
        lanes = self._latest[1].lanes
        return (
            len(lanes) == 1
            and isinstance(lanes[0], ForeachLane)
            and lanes[0].is_brief
            and len(lanes[0].positions) == num_tensors
        )

    def brief_norms(self, grads: Sequence[torch.Tensor | None]) -> list[float] | None:
        """Of a step on which they are all that is asked; None where they are not the usual ones."""
        lane = self._latest[1].lanes[0] if self._latest is not None else None
        return lane.brief_norms(grads) if isinstance(lane, ForeachLane) else None

    def norms_so_far(self) -> list[list[float] | npt.NDArray[np.float32]]:
        """Gradient norms of the open step, of tensors in host memory: those of a device are not
        there yet.
        """
        if self._open is None:
            return []
        rows = [lane.host_norms() for lane in self._lanes]
        return [row for row in rows if row is not None]

    def after_step(self, step: int, params: Sequence[torch.Tensor]) -> None:
        """Without this call, as for a step that was skipped, the record has no parameter and update
        columns.
        """
        pending = self._open
        if pending is None or pending.step != step or len(params) != pending.num_tensors:
            return
        if any(lane.waits for lane in self._lanes):
            self._later = params
        else:
            self._finish(params, aside=False)
            self._close()

    def overlap(self) -> None:
        """A forward pass begins: what after_step left to do runs beside it. Nothing writes
        parameters until the next step, and that step's before_step waits, on the device, for this
        to be done. If no forward pass comes, before_step or
        drain do it in their turn."""
        params, pending = self._later, self._open
        if params is None or pending is None or torch.cuda.is_current_stream_capturing():
            return
        self._later = None
        self._finish(params, aside=True)
        self._close()

    def _finish(self, params: Sequence[torch.Tensor], aside: bool) -> None:
        for lane in self._lanes:
            whole = len(lane.positions) == len(params)
            lane.finish(params if whole else [params[i] for i in lane.positions], aside)

    def arrived(self) -> list[Measurement]:
        """Those that are there, in the order of their steps."""
        found = []
        while self._under_way and self._under_way[0].done():
            found.append(self._under_way.popleft())
        return found

    def ready(self) -> list[TensorStatistics]:
        return [measurement.result() for measurement in self.arrived()]

    def drain(self) -> list[TensorStatistics]:
        self.finish_all()
        return self.ready()

    def finish_all(self) -> None:
        """The end of the run: waits until everything has arrived."""
        self._close()
        for pending in self._under_way:
            pending.wait()

    def _close(self) -> None:
        pending, self._open = self._open, None
        params, self._later = self._later, None
        if pending is not None:
            if params is not None:
                self._finish(params, aside=False)
            pending.readings.extend(lane.collect() for lane in self._lanes)
            self._under_way.append(pending)
        self._lanes = ()

    def _plan(self, params: Sequence[torch.Tensor]) -> _Plan:
        key = tuple(map(id, params))
        plan = self._plans.get(key)
        if plan is None or not plan.alive():
            # A plan may hold a copy of all parameters: those of models that are gone are given back
            # first.
            self._plans = {
                known: held for known, held in self._plans.items() if held.alive() and known != key
            }
            while len(self._plans) >= MAX_PLANS:
                del self._plans[next(iter(self._plans))]
            plan = self._plans[key] = _Plan(params)
        return plan


def _lane(device: torch.device, where: Sequence[int], params: Sequence[torch.Tensor]) -> _Lane:
    if device.type == "cuda":
        try:
            from sawbones.observe.statistics.device_lane import DeviceLane
        except ImportError:  # no Triton
            return ForeachLane(device, where)
        return DeviceLane(device, where, params)
    return ForeachLane(device, where)


def _keep(scale: float | torch.Tensor | None) -> tuple[float | torch.Tensor | None, list[Reading]]:
    """The scaler changes its tensor in place after the step, so its value is taken now, without
    waiting for it.
    """
    if not isinstance(scale, torch.Tensor):
        return scale, []
    if not scale.is_cuda:
        return float(scale), []
    pinned, event = send_home(scale.detach())
    return pinned, [Reading((), dict, event)]


def _half_tiny(
    scale: float | torch.Tensor | None, unscaled_from: float | torch.Tensor | None
) -> float | torch.Tensor | None:
    if scale is not None:
        return FLOAT16_TINY
    if unscaled_from is None:
        return None
    if isinstance(unscaled_from, torch.Tensor) and not unscaled_from.is_cuda:
        unscaled_from = float(unscaled_from)
    return FLOAT16_TINY / unscaled_from

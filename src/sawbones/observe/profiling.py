"""The profile of a training loop: where its time goes, which operators take it and who holds memory
at the peak, by user's line.

Three stretches of steps one after the other, after a few to warm up: SPLIT steps with a clock at
every boundary (on a device with a wait for it), TRACED steps under torch.profiler, and all others
without either, for the throughput. A short script gives the first two and perhaps little of the
third.
"""

from __future__ import annotations

import linecache
import os
import sys
import time
import warnings
from collections import defaultdict
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch._C._profiler import _EventType
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.data.dataloader import _BaseDataLoaderIter

from sawbones.observe.operators import OperatorStream
from sawbones.observe.patches import Patches
from sawbones.observe.sites import is_user_file
from sawbones.schema import Site
from sawbones.schema.profile import MemoryOwner, OperatorTime, Profile, StepParts

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

WARM_STEPS = 3
SPLIT_STEPS = 6
TRACED_STEPS = 2
SETTLE_STEPS = 1  # after tracing, before the throughput is measured


class Profiler:
    def __init__(self, recorder: Recorder, patches: Patches) -> None:
        self._r = recorder
        self._split: list[StepParts] = []
        self._clock: dict[str, float] = {}
        self._mark = ("", 0.0)
        self._step_began = 0.0
        self._trace: Any = None
        self._forward_hook: Any = None
        self._free: tuple[int, float] | None = (
            None  # first step of the last stretch, and when it began
        )
        self._profile = Profile()
        recorder.listeners.append(self._stepped)
        patches.replace(torch.autograd, "backward", self._make_backward)
        patches.replace(_BaseDataLoaderIter, "__next__", self._make_next)
        patches.on_exit(
            register_optimizer_step_pre_hook(lambda *_: self._enter("optimizer")).remove
        )
        patches.on_exit(
            register_optimizer_step_post_hook(lambda *_: self._leave("optimizer")).remove
        )
        patches.on_exit(self._close)

    # the split

    def _make_backward(self, original: Any) -> Any:
        def backward(*args: Any, **kwargs: Any) -> None:
            self._leave("forward")
            self._enter("backward")
            original(*args, **kwargs)
            self._leave("backward")

        return backward

    def _make_next(self, original: Any) -> Any:
        def __next__(iterator: Any) -> Any:
            self._enter("data")
            try:
                return original(iterator)
            finally:
                self._leave("data")

        return __next__

    def _before_module(self, module: nn.Module, args: Any) -> None:
        if not self._mark[0] and torch.is_grad_enabled():
            self._enter("forward")

    def _enter(self, part: str) -> None:
        if self._forward_hook is not None and self._r.is_host():
            self._mark = (part, _now())

    def _leave(self, part: str) -> None:
        if self._mark[0] == part:
            self._clock[part] = self._clock.get(part, 0.0) + _now() - self._mark[1]
            self._mark = ("", 0.0)

    # the stretches

    def _stepped(self, recorder: Recorder) -> None:
        done = recorder.step
        if done == WARM_STEPS:
            self._forward_hook = nn.modules.module.register_module_forward_pre_hook(
                self._before_module
            )
            self._begin_step()
        elif WARM_STEPS < done <= WARM_STEPS + SPLIT_STEPS:
            self._end_step()
            if done == WARM_STEPS + SPLIT_STEPS:
                self._forward_hook.remove()
                self._forward_hook = None
                self._start_trace()
        elif done == WARM_STEPS + SPLIT_STEPS + TRACED_STEPS:
            self._stop_trace()
        elif done == WARM_STEPS + SPLIT_STEPS + TRACED_STEPS + SETTLE_STEPS:
            self._free = (done, _now())
        if self._free is not None and done > self._free[0]:
            self._profile = replace(
                self._profile,
                free_steps=done - self._free[0],
                free_seconds=time.perf_counter() - self._free[1],
            )

    def _begin_step(self) -> None:
        self._clock, self._step_began = {}, _now()

    def _end_step(self) -> None:
        took = _now() - self._step_began
        clock = self._clock
        parts = [clock.get(part, 0.0) for part in ("data", "forward", "backward", "optimizer")]
        other = max(0.0, took - sum(parts))
        self._split.append(StepParts(*(1e3 * part for part in (*parts, other))))
        self._begin_step()

    # the trace

    def _start_trace(self) -> None:
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
            torch.cuda.reset_peak_memory_stats()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._trace = torch.profiler.profile(
                activities=activities, with_stack=True, profile_memory=True
            )
            self._trace.__enter__()
        # Passing every call on makes operators such as `a @ b`, which are no calls to the
        # profiler, show their line.
        self._lines = OperatorStream(lambda func, args, kwargs: func(*args, **kwargs))
        self._lines.start()

    def _stop_trace(self) -> None:
        trace, self._trace = self._trace, None
        if trace is None:
            return
        self._lines.stop()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trace.__exit__(None, None, None)
        self._r.guard("profile", self._read_trace, trace)

    def _read_trace(self, trace: Any) -> None:
        reading = TraceReading(self._r, trace)
        peak, owners = reading.memory()
        self._profile = replace(
            self._held(), operators=reading.operators(), step_peak=peak, owners=owners
        )

    def _held(self) -> Profile:
        params = self._r.census.trainable()
        return replace(
            self._profile,
            parameters=sum(p.nbytes for p in params),
            gradients=sum(p.grad.nbytes for p in params if p.grad is not None),
            optimizer=sum(_bytes_in(o.state) for o in self._r.census.optimizers()),
        )

    def _close(self) -> None:
        if self._forward_hook is not None:
            self._forward_hook.remove()
            self._forward_hook = None
        self._r.guard("profile", self._stop_trace)
        told = self._profile if self._profile.parameters else self._held()
        on_device = torch.cuda.is_available() and torch.cuda.is_initialized()
        peak = torch.cuda.max_memory_allocated() if on_device else 0
        told = replace(told, split=tuple(self._split), device_peak=peak)
        self._r.writer.record("profile", 0, told)


class TraceReading:
    """The tree of events of torch.profiler: operators below the Python calls that led to them,
    allocations below operators.
    """

    def __init__(self, recorder: Recorder, trace: Any) -> None:
        self._r = recorder
        self._kernels = _kernel_times(trace)
        self._forward_lines: dict[int, tuple[str, int]] = {}
        self._ops: dict[tuple[str, tuple[str, int] | None], list[float]] = defaultdict(
            lambda: [0.0, 0.0, 0.0]
        )
        self._allocations: list[
            tuple[int, int, int, tuple[str, int] | None, str]
        ] = []  # time, pointer, bytes, line, operator
        roots = trace.profiler.kineto_results.experimental_event_tree()
        for root in roots:
            self._note_forward(root)
        for root in roots:
            self._read(root)

    def _note_forward(self, root: Any) -> None:
        """Sequence numbers tie an operator of the backward pass to the one that it is the
        derivative of.
        """
        waiting: list[tuple[Any, tuple[str, int] | None]] = [(root, None)]
        while waiting:
            event, line = waiting.pop()
            line = _line_of(event) or line
            if (
                event.typed[0] == _EventType.TorchOp
                and line is not None
                and "Backward" not in event.name
            ):
                self._forward_lines.setdefault(
                    int(event.extra_fields.sequence_number), line
                )  # -1: it has no derivative
            waiting += [(child, line) for child in event.children if not _is_ours(child)]

    def _read(self, root: Any) -> None:
        waiting: list[tuple[Any, tuple[str, int] | None, str]] = [(root, None, "")]
        while waiting:
            event, line, outer = waiting.pop()
            kind = event.typed[0]
            line = _line_of(event) or line
            if kind == _EventType.TorchOp:
                number = int(event.extra_fields.sequence_number)
                if "Backward" in event.name and number >= 0 and number in self._forward_lines:
                    line = self._forward_lines[number]
                inner = sum(
                    child.duration_time_ns
                    for child in event.children
                    if child.typed[0] == _EventType.TorchOp
                )
                if (
                    "#" not in event.name
                ):  # a named stretch of torch's own, such as Optimizer.step#Adam.step
                    row = self._ops[event.name, line]
                    row[0] += 1
                    row[1] += max(0, event.duration_time_ns - inner) * 1e-6
                    row[2] += self._kernels.get(int(event.correlation_id), 0.0)
                    outer = event.name
            elif kind == _EventType.Allocation:
                fields = event.extra_fields
                if not torch.cuda.is_available() or fields.device.type == "cuda":
                    self._allocations.append(
                        (event.start_time_ns, int(fields.ptr), int(fields.alloc_size), line, outer)
                    )
            waiting += [(child, line, outer) for child in event.children if not _is_ours(child)]

    def operators(self, count: int = 40) -> tuple[OperatorTime, ...]:
        rows = [
            OperatorTime(name, self._site(line), *(total / TRACED_STEPS for total in totals))
            for (name, line), totals in self._ops.items()
        ]
        on_device = any(row.device_ms for row in rows)
        rows.sort(key=lambda row: -(row.device_ms if on_device else row.host_ms))
        return tuple(rows[:count])

    def memory(self, count: int = 20) -> tuple[int, tuple[MemoryOwner, ...]]:
        """What the traced steps had allocated themselves at their peak: in all, and by line."""
        live: dict[int, tuple[int, tuple[str, int] | None, str]] = {}
        total = most = 0
        at_peak: dict[int, tuple[int, tuple[str, int] | None, str]] = {}
        for _, pointer, size, line, name in sorted(self._allocations, key=lambda a: a[0]):
            if size > 0:
                live[pointer] = (size, line, name)
                total += size
            elif pointer in live:
                total -= live.pop(pointer)[0]
            if total > most:
                most, at_peak = total, dict(live)
        owners: dict[tuple[tuple[str, int] | None, str], int] = defaultdict(int)
        for size, line, name in at_peak.values():
            owners[line, name] += size
        rows = [MemoryOwner(size, name, self._site(line)) for (line, name), size in owners.items()]
        return most, tuple(sorted(rows, key=lambda row: -row.num_bytes)[:count])

    def _site(self, line: tuple[str, int] | None) -> Site | None:
        if line is None:
            return None
        return Site(
            self._r.sites.shown(line[0]), line[1], "", linecache.getline(*line).strip()[:200]
        )


def _line_of(event: Any) -> tuple[str, int] | None:
    """The user's line that makes this Python call, or None when it is none of the user's."""
    if event.typed[0] not in (_EventType.PyCall, _EventType.PyCCall):
        return None
    caller = event.extra_fields.caller
    name = _whole_path(str(caller.file_name))
    return (
        (name, int(caller.line_number)) if is_user_file(name) and not name.startswith("<") else None
    )


@cache
def _whole_path(name: str) -> str:
    """The profiler cuts off the folder of sys.path that a file was found in."""
    if os.path.isabs(name) or name.startswith("<"):
        return name
    return next(
        (
            whole
            for folder in sys.path
            if os.path.isfile(whole := os.path.join(folder or os.getcwd(), name))
        ),
        "<unknown>",
    )


def _is_ours(event: Any) -> bool:
    """Below this call lies work of the recorder, not of the script."""
    if event.typed[0] != _EventType.PyCall:
        return False
    called = event.extra_fields.callsite
    return str(called.file_name).endswith(os.path.join("sawbones", "observe", "guard.py"))


def _kernel_times(trace: Any) -> dict[int, float]:
    """Operator -> milliseconds of the kernels that it launched itself."""
    if not torch.cuda.is_available():
        return {}
    return {
        int(e.id): sum(k.duration for k in e.kernels) * 1e-3 for e in trace.events() if e.kernels
    }


def _bytes_in(state: Any) -> int:
    return sum(
        v.nbytes
        for entry in state.values()
        if isinstance(entry, dict)
        for v in entry.values()
        if isinstance(v, torch.Tensor)
    )


def _now() -> float:
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.perf_counter()

"""Step rows: loss, LR, norms, waits and memory of every optimizer step, and the packed per-tensor statistics."""

from __future__ import annotations

import math
import resource
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sawbones.observe.gradient_marks import GradientMarks
from sawbones.observe.statistics.engine import StatisticsEngine

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

_MB = 1024.0 * 1024.0


class _Held:
    """One optimizer (or the hand-written update) with its tensors and its statistics engine."""

    def __init__(self, index: int, full_every: int) -> None:
        self.index = index
        self.engine = StatisticsEngine(full_every=full_every)
        self.params: list[torch.Tensor] = []
        self.layout = -1
        self.signature: tuple[int, ...] = ()
        self.began = False


class StepLog:
    def __init__(self, recorder: Recorder) -> None:
        self._r = recorder
        self._held: dict[int, _Held] = {}
        self._rows: deque[dict[str, float]] = deque()
        self._num_rows = 0
        self._num_tensor_rows = 0
        self._num_layouts = 0
        self._loss: dict[str, float] = {}
        self._stepped = False  # an optimizer object has stepped: no hand-written update is looked for
        self._num_backward = 0
        self._marks: list[tuple[torch.Tensor, float]] = []
        self.marks = GradientMarks()
        self._in_closure: torch.optim.Optimizer | None = None
        self._last_time = time.perf_counter()
        self.last_deep = -1
        self.wait_ms = 0.0

    def params_changed(self) -> None:
        for held in self._held.values():
            held.signature = ()

    # losses

    def loss_seen(self, loss: Any, event: dict[str, Any]) -> None:
        slot = self._loss = {}

        def deliver(value: float) -> None:
            slot["loss"] = value
            event["value"] = value

        self._r.scalars.submit(loss, deliver)

    # optimizer steps

    def _of(self, optimizer: torch.optim.Optimizer) -> _Held:
        index = self._r.census.optimizer_index(optimizer)
        held = self._held.setdefault(index, _Held(index, self._r.options.full_every))
        params = [p for group in optimizer.param_groups for p in group["params"]]
        self._use(held, params)
        return held

    def _use(self, held: _Held, params: list[torch.Tensor]) -> None:
        signature = tuple(map(id, params))
        if signature != held.signature:
            held.signature, held.params = signature, params
            held.layout = self._num_layouts
            self._num_layouts += 1
            self._r.writer.layout(held.layout, [self._r.census.tensor_index(p) for p in params])

    def begin(self, optimizer: torch.optim.Optimizer, closure: bool) -> None:
        self._stepped = True
        self._held.pop(-1, None)  # no hand-written update after all
        held = self._of(optimizer)
        if closure:
            self._in_closure = optimizer  # gradients do not exist yet: measured after the closure's first backward
        else:
            self._before(held)

    def _before(self, held: _Held) -> None:
        held.began = True
        deep = self._r.deep is not None
        held.engine.before_step(self._r.step, held.params, [p.grad for p in held.params], full=True if deep else None)

    def end(self, optimizer: torch.optim.Optimizer, lr: float) -> None:
        held = self._of(optimizer)
        if held.began:
            held.engine.after_step(self._r.step, held.params)
        held.began = False
        self._in_closure = None
        self.marks.stepped(held.index, held.params)
        self._row(held, lr, skipped=False)

    def skipped(self, optimizer: torch.optim.Optimizer, lr: float) -> None:
        self._stepped = True
        held = self._of(optimizer)
        self._before(held)
        held.began = False
        self.marks.stepped(held.index, held.params)
        self._row(held, lr, skipped=True)

    def backward_done(self) -> None:
        self._num_backward += 1
        self.marks.backward_ends()
        if self._in_closure is not None:
            held = self._of(self._in_closure)
            if not held.began:
                self._before(held)
        elif not self._stepped:
            self._mark_values()

    # updates written by hand: parameters that change although no optimizer stepped

    def _mark_values(self) -> None:
        params = self._r.census.trainable()
        if not params:
            return
        held = self._held.setdefault(-1, _Held(-1, self._r.options.full_every))
        self._use(held, params)
        self._before(held)
        small = sorted((p for p in params if p.device.type == "cpu"), key=lambda p: p.numel())[:8]
        self._marks = [(p, float(p.detach().sum())) for p in small]

    def manual_step_check(self) -> None:
        if self._stepped or not self._marks:
            return
        changed = sum(1 for p, before in self._marks if float(p.detach().sum()) != before)
        marks, self._marks = self._marks, []
        if not changed:
            return
        held = self._held[-1]
        held.engine.after_step(self._r.step, held.params)
        self.marks.stepped(held.index, held.params)
        self._r.event("manual_step", {"num_changed": changed, "num_looked": len(marks)})
        self._row(held, math.nan, skipped=False)
        self._r.next_step()

    # rows

    def _row(self, held: _Held, lr: float, skipped: bool) -> None:
        now = time.perf_counter()
        r = self._r
        row: dict[str, Any] = {
            "step": float(r.step),
            "optimizer": float(held.index),
            "time": now - r.began,
            "lr": lr,
            "data_wait_ms": self.wait_ms,
            "step_ms": (now - self._last_time) * 1e3,
            "memory_mb": _memory_mb(),
            "skipped": float(skipped),
            "microsteps": float(r.microstep),
            "deep": float(r.deep is not None),
            "watch_ms": r.guard.spent_s * 1e3,
            "_loss": self._loss,
            "_layout": held.layout,
            "_row": self._num_rows,
        }
        scale = r.facts.get("scale")
        if scale is not None:
            row["scale"] = scale
        r.guard.spent_s = 0.0
        self.wait_ms = 0.0
        self._last_time = now
        self._num_rows += 1
        self._rows.append(row)
        self._collect(held, wait=False)
        self._write_ready()

    def _collect(self, held: _Held, wait: bool) -> None:
        for result in held.engine.drain() if wait else held.engine.ready():
            row = next((x for x in self._rows if x["step"] == result.step), None)
            columns = result.columns
            if row is not None:
                row["grad_norm"] = _total(columns.get("grad_l2"))
                if "param_l2" in columns:
                    row["param_norm"] = _total(columns["param_l2"])
                if "update_l2" in columns:
                    row["update_norm"] = _total(columns["update_l2"])
                row["_measured"] = 1.0
            layout = int(row["_layout"]) if row is not None else held.layout
            self._r.writer.tensor_row(self._num_tensor_rows, result.step, layout, columns)
            self._num_tensor_rows += 1

    def _write_ready(self, everything: bool = False) -> None:
        self._r.scalars.poll()
        while self._rows:
            row = self._rows[0]
            ready = ("loss" in row["_loss"] or not row["_loss"]) and "_measured" in row  # type: ignore[operator, index]
            if not ready and not everything and len(self._rows) < 64:
                return
            self._rows.popleft()
            loss = row["_loss"].get("loss")  # type: ignore[union-attr, attr-defined]
            values = {k: v for k, v in row.items() if not k.startswith("_")}
            if loss is not None:
                values["loss"] = loss
            self._r.writer.step(int(row["_row"]), values)

    def close(self) -> None:
        self.manual_close()
        self._r.scalars.drain()
        for held in self._held.values():
            self._collect(held, wait=True)
        self._write_ready(everything=True)

    def manual_close(self) -> None:
        """The last hand-written update has no backward after it to reveal it."""
        if self._stepped or not self._marks:
            return
        if any(float(p.detach().sum()) != before for p, before in self._marks):
            held = self._held[-1]
            held.engine.after_step(self._r.step, held.params)
            self._row(held, math.nan, skipped=False)
            self._r.step += 1


def _total(norms: Any) -> float:
    if norms is None:
        return math.nan
    values = np.asarray(norms, np.float64)
    measured = values[~(values < 0)]  # keeps NaN; drops both sentinels
    return float(np.sqrt(np.sum(measured**2))) if len(measured) else math.nan


def _memory_mb() -> float:
    if torch.cuda.is_initialized():
        return torch.cuda.memory_allocated() / _MB
    try:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize() / _MB
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (_MB if sys.platform == "darwin" else 1024.0)

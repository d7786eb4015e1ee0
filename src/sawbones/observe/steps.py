"""Step rows: loss, LR, norms, waits and memory of every optimizer step, and the packed per-tensor
statistics.
"""

from __future__ import annotations

import math
import operator
import os
import resource
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sawbones.observe.gradient_marks import MARKED, GradientMarks
from sawbones.observe.handwork import Handwork
from sawbones.observe.signals.update_ops import UpdateOps
from sawbones.observe.signals.updates import UpdateLog
from sawbones.observe.statistics.engine import Measurement, StatisticsEngine
from sawbones.schema import NOT_MEASURED
from sawbones.store.writer import Entry, Rows, step_entry, tensor_entry

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

_MB = 1024.0 * 1024.0
_PAGE_MB = resource.getpagesize() / _MB
_MEMORY_FIRST = 32  # steps
_MEMORY_EVERY_S = (
    0.2  # from then on: on a device torch puts together all of its statistics for this one number
)
_POLL_S = 0.2
_SOME_ROWS, _MANY_ROWS = 16, 64  # that wait for their numbers
_FEW = 64  # numbers that plain Python adds up faster than NumPy


class Held:
    """One optimizer (or the hand-written update) with its tensors and its statistics engine."""

    def __init__(self, index: int, full_every: int) -> None:
        self.index = index
        self.engine = StatisticsEngine(full_every=full_every)
        self.params: list[torch.Tensor] = []
        self.layout = -1
        self.began = False
        # While the step runs: torch makes an object for a gradient when it is asked for one, and
        # the optimizer asks next.
        self.grads: list[torch.Tensor | None] = []
        self.carries_scale = (
            False  # the gradients it is given are still multiplied by the loss scale
        )


class StepLog:
    def __init__(self, recorder: Recorder) -> None:
        self._r = recorder
        self._held: dict[int, Held] = {}
        self._rows: deque[dict[str, Any]] = deque()
        self._num_rows = 0
        self._polled = 0.0
        self._num_tensor_rows = 0
        self._num_layouts = 0
        self._loss: dict[str, float] = {}
        self._stepped = (
            False  # an optimizer object has stepped: no hand-written update is looked for
        )
        self.by_hand = False  # parameters were seen to change without one
        self.heard_backward = False  # of autograd itself
        self.in_transforms = False  # passes are gradients of torch.func
        # gradients that torch.autograd.grad handed to the script, by identity of the parameter
        self._asked: dict[int, torch.Tensor | None] = {}
        self.begin_anew()
        # told of the parameters, when the next backward pass begins
        self.on_manual_step: list[Callable[[list[torch.Tensor]], None]] = []
        self._updates = UpdateLog(recorder) if recorder.options.journal else None
        self._memory = MemoryReader()
        self._last_time = time.perf_counter()
        self.last_deep = -1
        self.wait_ms = 0.0
        self._between = False  # a step is over and the next forward has not begun

    def begin_anew(self) -> None:
        """Parameters and gradients may have changed while nobody looked."""
        self._hand = Handwork(self._r.census)
        self.marks = GradientMarks(None if self._r.options.journal else MARKED)
        self._asked.clear()
        for held in self._held.values():
            held.began, held.grads = False, []

    def params_changed(self) -> None:
        """A new model was seen: tensors may have names now, so their list is written again."""
        for held in self._held.values():
            held.params = []

    def forward_began(self, prepared: bool = False) -> None:
        """Parameters are only read from here to the next step: a device measures them beside the
        forward pass.

        `prepared`: no loader is in use, so what passed since the last step went into the next
        batch.
        """
        if prepared:
            self.prepared()
        self._between = False
        for held in self._held.values():
            held.grads = []
            held.engine.overlap()

    # losses

    def loss_seen(self, loss: Any, event: dict[str, Any], root: torch.Tensor | None) -> None:
        if not self._stepped:
            self._hand.root = root
        slot: dict[str, float] = {}
        self._loss, step = slot, self._r.step

        def deliver(value: float) -> None:
            slot["loss"] = value
            event["value"] = value
            if not math.isfinite(value) and self._r.nonfinite_loss is None:
                self._r.nonfinite_loss = (step, value)

        self._r.scalars.submit(loss, deliver)

    # optimizer steps

    def _of(self, optimizer: torch.optim.Optimizer) -> Held:
        index = self._r.census.optimizer_index(optimizer)
        held = self._held.get(index)
        if held is None:
            held = self._held[index] = Held(index, self._r.options.full_every)
        groups = optimizer.param_groups
        self._use(
            held,
            groups[0]["params"]
            if len(groups) == 1
            else [p for group in groups for p in group["params"]],
        )
        return held

    def _use(self, held: Held, params: list[torch.Tensor]) -> None:
        if len(params) != len(held.params) or not all(map(operator.is_, params, held.params)):
            held.params = list(params)
            held.layout = self._num_layouts
            self._num_layouts += 1
            self._r.writer.layout(held.layout, [self._r.census.tensor_index(p) for p in params])

    def begin(self, optimizer: torch.optim.Optimizer, closure: bool) -> None:
        self._stepped, self.by_hand = True, False
        self._held.pop(-1, None)  # no hand-written update after all
        self._no_more_by_hand()
        held = self._of(optimizer)
        held.carries_scale = getattr(optimizer, "grad_scale", None) is not None
        if not closure:  # with one the gradients do not exist yet
            held.grads = self._before(held, optimizer)

    def closure_returned(self, optimizer: torch.optim.Optimizer) -> None:
        """Gradients of the step are complete now: accumulated, unscaled and clipped, wherever a
        framework does that.
        """
        held = self._of(optimizer)
        if not held.began:
            self._before(held, optimizer)

    def gradient_norms(self, optimizer: torch.optim.Optimizer) -> list[Any]:
        """Of the step that has begun, as far as they are known without waiting."""
        held = self._held.get(self._r.census.optimizer_index(optimizer))
        return held.engine.norms_so_far() if held is not None and held.began else []

    def _before(
        self, held: Held, optimizer: torch.optim.Optimizer | None = None
    ) -> list[torch.Tensor | None]:
        held.began = True
        deep = self._r.deep is not None
        grads = [p.grad for p in held.params]
        if self._asked:
            grads = [self._asked.get(id(p), p.grad) for p in held.params]
        if self._updates is not None:
            before = self._updates.before
            self._r.guard("updates", before, held.index, held.params, grads, optimizer)
        if self._r.loss_scale is None:
            held.engine.before_step(
                self._r.step, held.params, grads, full=True if deep else None, layout=held.layout
            )
            return grads
        # A fused optimizer gets its gradients still scaled and divides inside its kernel; others
        # get them unscaled.
        scaled = held.carries_scale
        scale = self._r.loss_scale
        held.engine.before_step(
            self._r.step,
            held.params,
            grads,
            full=True if deep else None,
            scale=scale if scaled else None,
            unscaled_from=None if scaled else scale,
            layout=held.layout,
        )
        return grads

    def end(self, optimizer: torch.optim.Optimizer, lr: float) -> None:
        held = self._held.get(self._r.census.optimizer_index(optimizer)) or self._of(optimizer)
        if held.began:
            held.engine.after_step(self._r.step, held.params)
            self._updated(held)
        held.began = False
        self.marks.stepped(held.index, held.params)
        held.grads = []
        self._row(held, lr, skipped=False)

    def _updated(self, held: Held) -> None:
        if self._updates is not None:
            self._r.guard("updates", self._updates.after, held.index, held.params)

    def skipped(self, optimizer: torch.optim.Optimizer, lr: float) -> None:
        self._stepped, self.by_hand = True, False
        held = self._of(optimizer)
        self._before(held, optimizer)
        if self._updates is not None:
            self._updates.skipped(held.index)
        held.began = False
        self.marks.stepped(held.index, held.params)
        self._row(held, lr, skipped=True)

    @property
    def by_optimizer(self) -> bool:
        return self._stepped

    def asks_for(self, params: list[torch.Tensor], as_arguments: bool = False) -> bool:
        """Whether torch.autograd.grad is about to do the work of a backward pass: no optimizer
        object is in use, and what it is asked about are the parameters, not the inputs of a model.

        `as_arguments`: they are those of a pure function, which may stand for the model's own.
        """
        trainable = self._r.census.trainable()
        known = {id(p) for p in trainable}
        own = known.issuperset(map(id, params)) or (as_arguments and _are_like(params, trainable))
        if self._stepped or (known and not own):
            return False
        self._hand.asked = params
        return True

    def got(self, gradients: Sequence[torch.Tensor | None]) -> None:
        params = self._hand.asked
        self._asked = {id(p): g for p, g in zip(params, gradients, strict=True)}

    def _no_more_by_hand(self) -> None:
        if self._updates is not None:
            self._updates.abandon()  # it keeps gradients, and what it has heard of

    def hears_updates(self) -> UpdateOps | None:
        """Who wants to be told of every operator now: an update by hand is under way."""
        updates = self._updates
        return updates.ops if updates is not None and updates.ops.is_open else None

    def backward_done(self) -> None:
        self.marks.backward_ends()
        if not self._stepped:
            self._mark_values()

    # updates written by hand: parameters that change although no optimizer stepped

    def _mark_values(self) -> None:
        params = self._hand.backward_ended()
        if params:
            held = self._held.setdefault(-1, Held(-1, self._r.options.full_every))
            self._use(held, params)
            self._before(held)

    def manual_step_check(self, root: torch.Tensor | None) -> None:
        if self._stepped:
            return
        seen = self._hand.changes(root)
        if not seen.changed:
            self._no_more_by_hand()
            return
        held, self.by_hand = self._held[-1], True
        if seen.replaced:
            for old, new in zip(held.params, seen.replaced, strict=True):
                self._r.census.takes_the_place(new, old)
            held.params = list(seen.replaced)
        held.engine.after_step(self._r.step, held.params)
        self._updated(held)
        self.marks.stepped(held.index, held.params)
        data: dict[str, Any] = {"num_changed": seen.changed, "num_looked": seen.looked}
        if seen.uncleared is not None:
            data["num_uncleared"] = seen.uncleared
        self._r.event("manual_step", data)
        self._row(held, math.nan, skipped=False)
        for listener in self.on_manual_step:
            self._r.guard("manual step", listener, held.params)
        self._r.next_step()

    # brief steps

    def brief_for(self, optimizer: torch.optim.Optimizer) -> Held | None:
        """What is to be measured of its steps, where that is simple enough for brief ones."""
        held = self._held.get(self._r.census.optimizer_index(optimizer))
        if (
            held is None
            or len(self._held) > 1
            or self._rows
            or self._r.loss_scale is not None
            or self._r.scalars.num_waiting
        ):
            return None
        return held if held.engine.can_be_brief(len(held.params)) else None

    def has_loss(self, value: float) -> None:
        self._loss = {"loss": value}

    def prepared(self) -> None:
        """A model is called without a loader: what passed since the last step went into its
        batch.
        """
        if self._between:
            self.wait_ms += (time.perf_counter() - self._last_time) * 1e3
            self._between = False

    def passed(self, now: float) -> tuple[float, float, float]:
        """Loss, wait and duration of a step, in milliseconds."""
        found = self._loss.get("loss", math.nan), self.wait_ms, (now - self._last_time) * 1e3
        self.wait_ms = 0.0
        self._last_time = now
        self._between = True
        return found

    def numbered(self, count: int, now: float) -> tuple[int, int, float]:
        """Numbers of the first of so many rows, and of the first of their statistics; the memory in
        use.
        """
        first = self._num_rows, self._num_tensor_rows, self._memory(now)
        self._num_rows += count
        self._num_tensor_rows += count
        return first

    # rows

    def _row(self, held: Held, lr: float, skipped: bool) -> None:
        now = time.perf_counter()
        r = self._r
        row: dict[str, Any] = {
            "step": float(r.step),
            "optimizer": float(held.index),
            "time": now - r.began,
            "lr": lr,
            "data_wait_ms": self.wait_ms,
            "step_ms": (now - self._last_time) * 1e3,
            "memory_mb": self._memory(now),
            "skipped": float(skipped),
            "microsteps": float(r.microstep),
            "deep": float(r.deep is not None),
            "watch_ms": r.guard.spent_s * 1e3,
            "_loss": self._loss,
            "_scale": self._scale(),
            "_layout": held.layout,
            "_row": self._num_rows,
        }
        r.guard.spent_s = 0.0
        if r.detail.stepped(r.step, row["watch_ms"], row["step_ms"]):
            r.batches.sample_from_here()
        self.wait_ms = 0.0
        self._last_time = now
        self._between = True
        self._num_rows += 1
        self._rows.append(row)
        # What is still on a device is asked for a few times a second: on every step, asking would
        # cost more than the rest.
        if "loss" in row["_loss"] or now - self._polled > _POLL_S or len(self._rows) >= _SOME_ROWS:
            self._polled = now
            self._hand_on()

    def _scale(self) -> dict[str, float]:
        slot: dict[str, float] = {}
        if self._r.loss_scale is not None:
            self._r.scalars.submit(
                self._r.loss_scale, lambda value: slot.__setitem__("scale", value)
            )
        return slot

    def _hand_on(self, everything: bool = False) -> None:
        """Rows that are complete go to the writer, in their order."""
        for held in (
            self._held.values()
        ):  # first: the loss of what has arrived, sent before it, has arrived as well
            for measured in held.engine.arrived():
                row = next(
                    (
                        x
                        for x in self._rows
                        if x["step"] == measured.step and x["optimizer"] == held.index
                    ),
                    None,
                )
                if row is not None:
                    row["_measured"] = measured
                else:  # its row had to go without it
                    layout = held.layout if measured.layout is None else measured.layout
                    self._r.writer.later(partial(_tensors, measured, self._num_tensor_rows, layout))
                    self._num_tensor_rows += 1
        if self._r.scalars.num_waiting:
            self._r.scalars.poll()
            self._r.release_events()
        while self._rows:
            row = self._rows[0]
            ready = ("loss" in row["_loss"] or not row["_loss"]) and "_measured" in row
            if not ready and not everything and len(self._rows) < _MANY_ROWS:
                return
            self._rows.popleft()
            self._r.writer.later(partial(_entries, row, self._num_tensor_rows))
            self._num_tensor_rows += "_measured" in row

    def close(self) -> None:
        self.manual_close()
        self._r.scalars.drain()
        for held in self._held.values():
            held.engine.finish_all()
        self._hand_on(everything=True)
        if self._updates is not None:
            self._r.guard("updates", self._updates.write)
        self._memory.close()

    def manual_close(self) -> None:
        """The last hand-written update has no backward after it to reveal it."""
        if not self._stepped and self._hand.changes(None).changed:
            held = self._held[-1]
            held.engine.after_step(self._r.step, held.params)
            self._updated(held)
            self._row(held, math.nan, skipped=False)
            self._r.step += 1


def _are_like(some: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    return Counter(t.shape for t in some) <= Counter(t.shape for t in others)


def _entries(row: dict[str, Any], number: int) -> tuple[Entry, ...]:
    """Of a step: put together by the writer's thread."""
    measured: Measurement | None = row.get("_measured")
    if measured is None:
        return (step_entry(int(row["_row"]), {**row, **row["_loss"], **row["_scale"]}),)
    result = measured.result()
    _add_norms(row, result.columns)
    layout = int(row["_layout"]) if measured.layout is None else measured.layout
    tensors = tensor_entry(number, result.step, layout, result.columns)
    return tensors, step_entry(int(row["_row"]), {**row, **row["_loss"], **row["_scale"]})


def brief_rows(
    rows: list[tuple[Any, ...]],
    row: int,
    number: int,
    layout: int,
    optimizer: int,
    memory_mb: float,
) -> Rows:
    """Of brief steps in a row; of each its step, time, LR, loss, wait, duration, backward passes,
    own time and norms.
    """
    norms = np.array([values[-1] for values in rows], np.float32)
    wide = norms.astype(np.float64)
    totals = np.sqrt(np.einsum("ij,ij->i", wide, wide)).tolist()
    packed = [
        (number + i, values[0], layout, "grad_l2", norms[i].tobytes())
        for i, values in enumerate(rows)
    ]
    steps = [
        (
            row + i,
            step,
            optimizer,
            at,
            loss,
            totals[i],
            None,
            None,
            lr,
            wait_ms,
            step_ms,
            memory_mb,
            None,
            0,
            microsteps,
            0,
            spent_s * 1e3,
        )
        for i, (step, at, lr, loss, wait_ms, step_ms, microsteps, spent_s, _) in enumerate(rows)
    ]
    return {"tensor_row": packed, "step": steps}


def _tensors(measured: Measurement, number: int, layout: int) -> tuple[Entry]:
    result = measured.result()
    return (tensor_entry(number, result.step, layout, result.columns),)


def _add_norms(row: dict[str, Any], columns: Mapping[str, Any]) -> None:
    row["grad_norm"] = _total(columns.get("grad_l2"))
    if "param_l2" in columns:
        row["param_norm"] = _total(columns["param_l2"])
    if "update_l2" in columns and not _in_turns(columns):
        row["update_norm"] = _total(columns["update_l2"])


def _in_turns(columns: Mapping[str, Any]) -> bool:
    """Only some of the parameters' updates were measured: their norm is not that of the step."""
    sizes = columns.get("param_l2")
    return sizes is not None and bool(
        np.any((columns["update_l2"] == NOT_MEASURED) & (sizes != NOT_MEASURED))
    )


def _total(norms: Any) -> float:
    if norms is None:
        return math.nan
    if len(norms) > _FEW:
        wide = norms.astype(np.float64)
        if wide.min() < 0:
            wide = wide[~(wide < 0)]  # keeps NaN; drops both sentinels
        return math.sqrt(np.dot(wide, wide)) if len(wide) else math.nan
    squares = [value * value for value in norms.tolist() if not value < 0]
    return math.sqrt(sum(squares)) if squares else math.nan


def plain_lr(value: Any) -> float:
    if value.__class__ is float:
        return value
    if isinstance(value, torch.Tensor):
        return (
            float(value) if value.device.type == "cpu" else math.nan
        )  # a capturable LR on a device: no sync for it
    return float(value) if value is not None else math.nan


class MemoryReader:
    """Memory of the device where there is one, else of the process. The file stays open: opening it
    costs ten times the reading.
    """

    def __init__(self) -> None:
        self._latest = 0.0
        self._calls = 0
        self._next = 0.0
        try:
            self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._statm = -1

    def __call__(self, now: float) -> float:
        if self._calls < _MEMORY_FIRST or now > self._next:
            self._latest = self._read()
            self._next = now + _MEMORY_EVERY_S
            self._calls += 1
        return self._latest

    def _read(self) -> float:
        if torch.cuda.is_initialized():
            allocated = torch.cuda.memory_stats_as_nested_dict()["allocated_bytes"]["all"]
            return float(allocated["current"] / _MB)
        if self._statm >= 0:
            return int(os.pread(self._statm, 100, 0).split()[1]) * _PAGE_MB
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (_MB if sys.platform == "darwin" else 1024.0)

    def close(self) -> None:
        if self._statm >= 0:
            os.close(self._statm)
            self._statm = -1

"""Brief steps: the row and the gradient norms of a step, in as few calls as that takes, while
nothing more is asked of it.

Where a step takes a millisecond, the ordinary way through seven guarded hooks is a third of it.
Once so much was felt, and on a CPU whose steps look alike, the steps in between those that are kept
in full go this way. Whatever is out of the ordinary ends it at once: another model or loader, an
evaluation, a loss that is not finite, a gradient out of its range. Everything is kept where the
ordinary hooks keep it, so they take over in the middle of a step.
"""

from __future__ import annotations

import math
import sys
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed as dist
from torch import nn

from sawbones.observe.calls import is_training
from sawbones.observe.census import unwrap
from sawbones.observe.interrupts import HOLDING
from sawbones.observe.steps import Held, brief_rows, plain_lr
from sawbones.observe.unseen import is_profiled, num_dispatch_modes

if TYPE_CHECKING:
    from sawbones.observe.capturing import BriefCapturing
    from sawbones.observe.recorder import Recorder

HAND_ON_S = 0.2  # rows wait so long at most: what a kill may lose
IN_VAIN, REST = (
    4,
    100,
)  # times in a row that the very first brief step was not to be, and steps until it is tried again

_clock = time.perf_counter
_untraced = torch._C.DisableTorchFunction


class Brief:
    def __init__(self, recorder: Recorder) -> None:
        self._r = recorder
        options = recorder.options
        self._may = (
            not options.journal and options.max_steps is None and options.max_seconds is None
        )
        self.on = False
        self.is_open = False  # an optimizer's step has begun in this way
        self._opened_at = (-1, 0)
        self._models: dict[
            int, tuple[weakref.ref[nn.Module], weakref.ref[nn.Module], bool]
        ] = {}  # called to train: with what they wrap, and in which mode
        self._iterator = 0  # identity of that of the training loader
        self._carried = 0  # gradients that were not cleared, in the latest ordinary step
        self._held: Held | None = None
        self.optimizer: torch.optim.Optimizer | None = None
        self._lists: list[tuple[Any, int]] = []
        self._until = 0
        self._in_vain = 0
        self._not_before = 0
        self._rows: list[tuple[Any, ...]] = []
        self._handed = 0.0
        self._norms: list[float] = []
        self._grads: list[Any] = []
        self._capture: BriefCapturing | None = None
        self._told = False  # the capture was told of this backward pass in full

    # what ordinary steps tell

    def trained(self, module: nn.Module) -> None:
        if self._may:
            # Weakly: models may come and go without any step of an optimizer in between.
            inner = weakref.ref(unwrap(module))
            mode = is_training(module)
            self._models[id(module)] = (weakref.ref(module), inner, mode)

    def fetched(self, iterator: Any) -> None:
        self._iterator = id(iterator)

    def carries(self, carried: int) -> None:
        self._carried = carried

    def never(self) -> None:
        self._may = False
        self.leave()

    def consider(self, optimizer: torch.optim.Optimizer) -> None:
        """An ordinary step is over: may the next ones be brief?"""
        r = self._r
        models, self._models = (
            self._models,
            {},
        )  # not held for longer: their script may be done with them
        if (
            not self._may
            or r.step < self._not_before
            or not models
            or r.guard.off
            or self._is_due(r.step)
        ):
            return
        if r.deep is not None or r.phase != "train" or r.scaled or r.wants_deep():
            return
        if dist.is_available() and dist.is_initialized():  # ranks are compared step by step
            return
        held = r.steps.brief_for(optimizer)
        capture = r.capture.brief if r.capture is not None else None
        if held is None or (r.capture is not None and capture is None):
            return
        self._in_vain += 1
        if self._in_vain > IN_VAIN:
            self._in_vain, self._not_before = 0, r.step + REST
            return
        self._models, self._held, self.optimizer, self._capture = models, held, optimizer, capture
        self._lists = [(group["params"], len(group["params"])) for group in optimizer.param_groups]
        self._until = next(
            step for step in range(r.step + 1, r.step + r.detail.every + 1) if self._is_due(step)
        )
        self._handed = _clock()
        # identities are used again: those of this step say nothing of one twenty steps later
        r.steps.marks.forget()
        self.on = True

    def _is_due(self, step: int) -> bool:
        options = self._r.options
        return (
            self._r.detail.keeps("step", step, "train")
            or step % options.full_every == 0
            or options.is_deep(step)
        )

    # the step: each says whether that was all

    def __call__(self, act: Callable[..., bool], *args: Any) -> bool:
        """A guard of its own: the ordinary one does more than these steps need."""
        guard, holding = self._r.guard, HOLDING
        began = _clock()
        holding.depth += 1
        try:
            if guard.stopped or num_dispatch_modes() or is_profiled():
                return self.leave()
            with _untraced():
                return act(*args)
        except BaseException as error:
            self.never()
            guard.caught("brief steps", error, None)  # nothing here changes the gradient mode
            return False
        finally:
            holding.depth -= 1
            guard.spent_s += _clock() - began
            if holding.waiting and not holding.depth:
                holding.deliver()

    def batch(self, iterator: Any, wait_s: float, value: Any) -> bool:
        if id(iterator) != self._iterator or not self._r.batches.passed(value):
            return self.leave()
        r = self._r
        r.calls.depth = 0
        r.steps.wait_ms += wait_s * 1e3
        if r.capture is not None and self._capture is not None:
            frame = sys._getframe(2)
            if not self._capture.batch_again(value, frame):
                r.tell(r.capture.batch, iterator, value, frame)
        return True

    def forward(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        r = self._r
        known = self._models.get(id(module))
        inner = known[1]() if known is not None and known[0]() is module else None
        if known is None or inner is None:
            return r.census.is_no_model(module) or self.leave()
        if is_training(module) is not known[2] or not torch.is_grad_enabled():
            return self.leave()
        if not r.batches.loader_seen:
            if not r.batches.passed((args, kwargs)):
                return self.leave()
            r.steps.prepared()
        r.last_call = (inner, args, kwargs)
        if r.capture is not None and self._capture is not None:
            frame = sys._getframe(2)
            if not self._capture.forward_again(frame):
                r.tell(r.capture.forward, module, args, kwargs, frame)
        return True

    def backward(self, root: Any) -> bool:
        if root.__class__ is not torch.Tensor or root.numel() != 1 or not root.is_cpu:
            return self.leave()
        r = self._r
        value = root.item()
        if not math.isfinite(value):
            return self.leave()
        r.calls.depth = 0
        r.steps.has_loss(value)
        self._told = False
        if (
            r.capture is not None
            and self._capture is not None
            and not self._capture.loss_again(root, value, self._carried)
        ):
            self._told = True
            r.tell(
                r.capture.backward_begins, root, root, {"value": value, "carried": self._carried}
            )
        return True

    def backward_over(self) -> None:
        """Not called through the guard: mostly it counts and nothing else."""
        self._r.microstep += 1
        if self._told:
            self(self._tell_of_backward)

    def _tell_of_backward(self) -> bool:
        r = self._r
        if r.capture is not None:
            r.tell(r.capture.backward_ends)
        return True

    def step_begins(self, optimizer: torch.optim.Optimizer, closure: Any) -> bool:
        held, r = self._held, self._r
        if (
            optimizer is not self.optimizer
            or held is None
            or closure is not None
            or not self._same_parameters()
        ):
            return self.leave()
        if self._capture is not None and self._capture.is_asked:
            return self.leave()
        grads = [p.grad for p in held.params]
        norms = held.engine.brief_norms(grads)
        if norms is None:
            return self.leave()
        self.is_open, self._norms, self._grads = True, norms, grads
        self._opened_at = (r.step, r.microstep)
        return True

    @property
    def is_same_step(self) -> bool:
        """No backward pass since it was opened: a step that raised, and was caught, is not still
        under way.
        """
        return self._opened_at == (self._r.step, self._r.microstep)

    def _same_parameters(self) -> bool:
        groups = self.optimizer.param_groups if self.optimizer is not None else []
        if len(groups) != len(self._lists):
            return False
        for group, (params, count) in zip(groups, self._lists):  # noqa: B905  # strict=True costs more than all the rest here
            if group["params"] is not params or len(params) != count:
                return False
        return True

    def step_ends(self) -> bool:
        r = self._r
        lr = (
            plain_lr(self.optimizer.param_groups[0].get("lr"))
            if self.optimizer is not None
            else math.nan
        )
        self.is_open, self._grads = False, []
        now = _clock()
        self._rows.append(
            (
                r.step,
                now - r.began,
                lr,
                *r.steps.passed(now),
                r.microstep,
                r.guard.spent_s,
                self._norms,
            )
        )
        r.guard.spent_s = 0.0
        self._in_vain = 0
        if r.capture is not None:
            r.tell(r.capture.step_over)
        r.step += 1
        r.microstep = 0
        r.let_go()
        if r.step >= self._until or not self.on:
            self.leave()
            self.hand_on(now)
            if (
                self._held is not None
            ):  # the ordinary step that comes asks what was cleared since this one
                r.steps.marks.stepped(self._held.index, self._held.params)
            r.guard("step", r.step_passed)
        elif now - self._handed > HAND_ON_S:
            self.hand_on(now)
        return True

    def hand_on(self, now: float) -> None:
        self._handed = now
        if self._rows and self._held is not None:
            rows, self._rows = self._rows, []
            first, first_tensors, memory_mb = self._r.steps.numbered(len(rows), now)
            self._r.writer.stored(
                partial(
                    brief_rows,
                    rows,
                    first,
                    first_tensors,
                    self._held.layout,
                    self._held.index,
                    memory_mb,
                )
            )

    def leave(self) -> bool:
        """The ordinary way, from here on."""
        if self.on:
            self.on = False
            self._models = {}
            self.hand_on(_clock())
        return False

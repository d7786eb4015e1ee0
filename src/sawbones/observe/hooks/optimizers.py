"""Optimizers: construction, step (torch's own global hooks) and zero_grad."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from sawbones.observe.patches import Patches
from sawbones.observe.tracing import is_tracing

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


class _Nesting:
    """Optimizers that step by calling another one (ZeRO's redundancy optimizer, Lookahead, SAM):
    the outermost is the step.
    """

    def __init__(self) -> None:
        self._outer: int | None = None
        self._inner: set[int] = set()
        self._began: tuple[int, int] | None = (
            None  # step and backward passes; None where a closure may make some
        )

    def is_inner(self, optimizer: torch.optim.Optimizer, now: tuple[int, int] | None) -> bool:
        # A step that raised never ended: a backward pass since shows it. Without one, a class calls
        # its parent's step.
        known = self._began is not None and now is not None
        left = now != self._began if known else self._outer == id(optimizer)
        if self._outer is None or left:
            self._outer, self._began = id(optimizer), now
            self._inner.clear()
            return False
        self._inner.add(id(optimizer))
        return True

    def calls(self, optimizer: torch.optim.Optimizer) -> None:
        """The step that is under way goes on by calling this one."""
        self._inner.add(id(optimizer))

    def ends(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether this was a step, and not a part of one."""
        if id(optimizer) in self._inner:
            self._inner.discard(id(optimizer))
            return False
        self._outer = None
        return True


class _StepHooks:
    """Called by torch before and after the step of every optimizer."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._brief = recorder.brief
        self._nesting = _Nesting()
        self._in_closure: dict[int, bool] = {}  # whether a backward pass ran inside of step()

    def before(
        self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any
    ) -> tuple[Any, Any] | None:
        recorder, brief = self._recorder, self._brief
        if not recorder.trains_here():
            return None
        if brief.is_open and (optimizer is not brief.optimizer or brief.is_same_step):
            self._nesting.calls(optimizer)
            brief.never()
            return None
        closure = _closure(args, kwargs)
        if brief.on and brief(brief.step_begins, optimizer, closure):
            return None
        if self._nesting.is_inner(
            optimizer, None if closure is not None else (recorder.step, recorder.microstep)
        ):
            brief.never()
            return None
        recorder.guard("step", recorder.step_begins, optimizer, closure is not None)
        if closure is None:
            return None

        brief.never()
        self._in_closure[id(optimizer)] = False

        def watched_closure(*given: Any, **named: Any) -> Any:
            passes = recorder.microstep
            result = closure(*given, **named)
            if recorder.is_host():
                self._in_closure[id(optimizer)] |= recorder.microstep != passes
                recorder.guard("step", recorder.steps.closure_returned, optimizer)
                recorder.guard("step", recorder.gradients_complete, optimizer)
            return result

        args = tuple(watched_closure if a is closure else a for a in args)
        return args, {k: watched_closure if v is closure else v for k, v in kwargs.items()}

    def after(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        recorder, brief = self._recorder, self._brief
        if not recorder.trains_here() or not self._nesting.ends(optimizer):
            return
        if brief.is_open:
            brief(brief.step_ends)
        else:
            recorder.guard(
                "step", recorder.step_ends, optimizer, self._in_closure.pop(id(optimizer), False)
            )


def install(recorder: Recorder, patches: Patches) -> None:
    hooks = _StepHooks(recorder)
    patches.on_exit(register_optimizer_step_pre_hook(hooks.before).remove)
    patches.on_exit(register_optimizer_step_post_hook(hooks.after).remove)
    patches.replace(torch.optim.Optimizer, "__init__", partial(_make_init, recorder))
    of_optimizer = partial(_make_zero_grad, recorder, "optimizer")
    patches.replace(torch.optim.Optimizer, "zero_grad", of_optimizer)
    patches.replace(nn.Module, "zero_grad", partial(_make_zero_grad, recorder, "module"))


def _make_init(recorder: Recorder, original: Any) -> Any:
    def __init__(self: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if recorder.is_host():
            recorder.guard("optimizer", lambda: recorder.census.built(self, recorder.sites.find()))

    return __init__


def _make_zero_grad(recorder: Recorder, target: str, original: Any) -> Any:
    def zero_grad(self: Any, *args: Any, **kwargs: Any) -> Any:
        watched = recorder.options.journal and recorder.is_host() and not is_tracing()
        params = _params(self) if watched else []
        unused = (
            recorder.guard("zero_grad", recorder.steps.marks.unused, params) if params else None
        )
        result = original(self, *args, **kwargs)
        if params:
            recorder.guard("zero_grad", recorder.steps.marks.cleared, params, unused or ())
        if recorder.is_host() and recorder.wants("zero_grad") and not is_tracing():
            none = bool(kwargs.get("set_to_none", args[0] if args else True))
            data: dict[str, Any] = {"target": target, "set_to_none": none}
            if isinstance(self, torch.optim.Optimizer):
                data["optimizer"] = recorder.census.optimizer_index(self)
            recorder.guard("zero_grad", recorder.event, "zero_grad", data)
        return result

    return zero_grad


def _params(owner: Any) -> list[torch.Tensor]:
    if isinstance(owner, torch.optim.Optimizer):
        return [p for group in owner.param_groups for p in group["params"]]
    return list(owner.parameters())


def _closure(args: Any, kwargs: Any) -> Any:
    # The hooks see (self, closure); Lightning always passes one, an empty one when the script does
    # the backward pass by hand.
    values = (*args[1:], kwargs.get("closure"))
    return next((v for v in values if callable(v)), None)

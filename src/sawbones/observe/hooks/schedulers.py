"""LR schedulers. Every class of torch that defines its own step() is wrapped; users' subclasses
inherit one of them.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch.optim import lr_scheduler

from sawbones.observe.patches import Patches

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


class _Schedules:
    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.depth = 0  # of step() calls that schedulers make of each other
        self._built: dict[int, Any] = {}

    def plateau_built(self, scheduler: Any) -> None:
        self._built[id(scheduler)] = self.recorder.sites.find()
        self._tell(scheduler, _lrs(scheduler), True)

    def note(self, scheduler: Any, before: list[float], given: Any) -> None:
        # torch takes one step inside the constructor; that one is no step of the loop's.
        frame = inspect.currentframe()
        initial = False
        while frame is not None:
            if frame.f_code.co_name == "__init__" and isinstance(
                frame.f_locals.get("self"), lr_scheduler.LRScheduler
            ):
                initial = True
                break
            frame = frame.f_back
        if initial:
            self._built[id(scheduler)] = self.recorder.sites.find()
        self._tell(scheduler, before, initial, given)

    def _tell(self, scheduler: Any, before: list[float], initial: bool, given: Any = None) -> None:
        settings = {
            k: v
            for k, v in vars(scheduler).items()
            if isinstance(v, (int, float, str, bool)) and not k.startswith("_")
        }
        data: dict[str, Any] = {
            "cls": type(scheduler).__name__,
            "scheduler": len(self._built)
            if id(scheduler) not in self._built
            else list(self._built).index(id(scheduler)),
            "lr_before": before[:8],
            "lr_after": _lrs(scheduler)[:8],
            "initial": initial,
        }
        if initial:
            data["settings"] = settings
        elif isinstance(scheduler, lr_scheduler.ReduceLROnPlateau) and isinstance(
            given, (int, float)
        ):
            data["metric"] = float(given)
        self.recorder.event("schedule", data)


def install(recorder: Recorder, patches: Patches) -> None:
    schedules = _Schedules(recorder)
    for cls in [c for c in vars(lr_scheduler).values() if inspect.isclass(c) and "step" in vars(c)]:
        patches.replace(cls, "step", partial(_make_step, schedules))
    patches.replace(
        lr_scheduler.ReduceLROnPlateau, "__init__", partial(_make_plateau_init, schedules)
    )


def _make_step(schedules: _Schedules, original: Any) -> Any:
    recorder = schedules.recorder

    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = _lrs(self)
        schedules.depth += 1
        try:
            result = original(self, *args, **kwargs)
        finally:
            schedules.depth -= 1
        if not schedules.depth and recorder.is_host():
            recorder.guard(
                "schedule", schedules.note, self, before, args[0] if args else kwargs.get("metrics")
            )
        return result

    return step


def _make_plateau_init(schedules: _Schedules, original: Any) -> Any:
    recorder = schedules.recorder

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if recorder.is_host():  # the only scheduler that takes no step in its constructor
            recorder.guard("schedule", schedules.plateau_built, self)

    return __init__


def _lrs(scheduler: Any) -> list[float]:
    optimizer = getattr(scheduler, "optimizer", None)
    if optimizer is None:
        return []
    lrs = [group["lr"] for group in optimizer.param_groups]
    return [
        float(lr) if not isinstance(lr, torch.Tensor) or lr.device.type == "cpu" else float("nan")
        for lr in lrs
    ]

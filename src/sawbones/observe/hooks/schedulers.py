"""LR schedulers. Every class of torch that defines its own step() is wrapped; users' subclasses inherit one of them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import torch
from torch.optim import lr_scheduler

from sawbones.observe.patches import Patches

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    built: dict[int, Any] = {}
    depth = 0

    def make_step(original: Any) -> Any:
        def step(self: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            before = _lrs(self)
            depth += 1
            try:
                result = original(self, *args, **kwargs)
            finally:
                depth -= 1
            if not depth and recorder.is_host():
                recorder.guard("schedule", note, self, before)
            return result

        return step

    def note(scheduler: Any, before: list[float]) -> None:
        # torch takes one step inside the constructor; that one is no step of the loop's.
        frame = inspect.currentframe()
        initial = False
        while frame is not None:
            if frame.f_code.co_name == "__init__" and isinstance(frame.f_locals.get("self"), lr_scheduler.LRScheduler):
                initial = True
                break
            frame = frame.f_back
        if initial:
            built[id(scheduler)] = recorder.sites.find()
        settings = {k: v for k, v in vars(scheduler).items() if isinstance(v, (int, float, str, bool)) and not k.startswith("_")}
        data = {
            "cls": type(scheduler).__name__,
            "scheduler": len(built) if id(scheduler) not in built else list(built).index(id(scheduler)),
            "lr_before": before[:8],
            "lr_after": _lrs(scheduler)[:8],
            "initial": initial,
        }
        if initial:
            data["settings"] = settings
        recorder.event("schedule", data)

    for cls in [c for c in vars(lr_scheduler).values() if inspect.isclass(c) and "step" in vars(c)]:
        patches.replace(cls, "step", make_step)


def _lrs(scheduler: Any) -> list[float]:
    optimizer = getattr(scheduler, "optimizer", None)
    if optimizer is None:
        return []
    lrs = [group["lr"] for group in optimizer.param_groups]
    return [float(lr) if not isinstance(lr, torch.Tensor) or lr.device.type == "cpu" else float("nan") for lr in lrs]

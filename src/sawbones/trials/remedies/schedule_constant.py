"""Every step at the learning rate that the optimizer was built with, whatever sets it since."""

from __future__ import annotations

from typing import Any

from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)


def install(recorder: Any) -> None:
    held: dict[int, list[Any]] = {}

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        held[id(optimizer)] = [group.get("lr") for group in optimizer.param_groups]
        for group in optimizer.param_groups:
            built = group.get("initial_lr", optimizer.defaults.get("lr"))
            if isinstance(built, float) and built > 0 and isinstance(group.get("lr"), float | int):
                group["lr"] = built

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        for group, lr in zip(optimizer.param_groups, held.pop(id(optimizer), []), strict=False):
            if lr is not None:
                group["lr"] = lr

    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)

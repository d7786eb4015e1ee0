"""The learning rate of the first steps rises in a straight line to what the loop asks for."""

from __future__ import annotations

from typing import Any

from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)


def install(recorder: Any, steps: float) -> None:
    taken: dict[int, int] = {}
    held: dict[int, list[Any]] = {}

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        count = taken[id(optimizer)] = taken.get(id(optimizer), 0) + 1
        held[id(optimizer)] = [group.get("lr") for group in optimizer.param_groups]
        for group in optimizer.param_groups:
            if group.get("lr") is not None:
                group["lr"] = group["lr"] * min(1.0, count / steps)

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        for group, lr in zip(optimizer.param_groups, held.pop(id(optimizer), []), strict=False):
            if lr is not None:
                group["lr"] = lr

    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)

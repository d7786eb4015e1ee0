"""Multiply every learning rate by a factor, whatever sets it: the optimizer sees lr * factor during
its step only.
"""

from __future__ import annotations

from typing import Any

from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)


def install(recorder: Any, factor: float) -> None:
    held: dict[int, list[Any]] = {}

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        held[id(optimizer)] = [group.get("lr") for group in optimizer.param_groups]
        for group in optimizer.param_groups:
            if group.get("lr") is not None:
                group["lr"] = group["lr"] * factor

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        for group, lr in zip(optimizer.param_groups, held.pop(id(optimizer), []), strict=False):
            if lr is not None:
                group["lr"] = lr

    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)

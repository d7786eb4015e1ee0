"""No weight decay: every optimizer sees 0 during its step only."""

from __future__ import annotations

from typing import Any

from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)


def install(recorder: Any) -> None:
    held: dict[int, list[Any]] = {}

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        held[id(optimizer)] = [group.get("weight_decay") for group in optimizer.param_groups]
        for group in optimizer.param_groups:
            if group.get("weight_decay"):
                group["weight_decay"] = 0.0

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        for group, decay in zip(optimizer.param_groups, held.pop(id(optimizer), []), strict=False):
            if decay is not None:
                group["weight_decay"] = decay

    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)

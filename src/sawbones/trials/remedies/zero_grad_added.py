"""Clear all gradients right after every optimizer step."""

from __future__ import annotations

from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook


def install(recorder: Any) -> None:
    def clear(optimizer: Any, args: Any, kwargs: Any) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    register_optimizer_step_post_hook(clear)

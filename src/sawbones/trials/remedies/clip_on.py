"""Clip the gradients of every optimizer step to one global norm, whatever the loop did before."""

from __future__ import annotations

from typing import Any

from torch.nn.utils import clip_grad_norm_
from torch.optim.optimizer import register_optimizer_step_pre_hook


def install(recorder: Any, max_norm: float) -> None:
    clip = getattr(
        clip_grad_norm_, "__sawbones__", clip_grad_norm_
    )  # the recorder must not take it for the loop's own

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        held = [
            p for group in optimizer.param_groups for p in group["params"] if p.grad is not None
        ]
        if held:
            clip(held, max_norm)

    register_optimizer_step_pre_hook(before)

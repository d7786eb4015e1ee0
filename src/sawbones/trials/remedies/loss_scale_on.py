"""Loss scaling from outside: the root of every backward is multiplied, every parameter's gradient
divided before it is added.

The scale is halved and the step dropped when a gradient overflows, as a GradScaler does. Gradients
that the loop sees are unscaled.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from sawbones.trials.remedies import took_hold


def install(recorder: Any, scale: float = 4096.0) -> None:
    state = {"scale": scale}
    hooked: dict[int, Any] = {}
    original = torch.autograd.backward

    def backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
        now = state["scale"]
        for parameter in recorder.census.trainable():
            if id(parameter) not in hooked and parameter.is_leaf:
                hooked[id(parameter)] = parameter.register_hook(
                    lambda gradient: gradient / state["scale"]
                )
        for root in (tensors,) if isinstance(tensors, torch.Tensor) else tuple(tensors):
            if isinstance(root, torch.Tensor) and root.requires_grad and not root.is_leaf:
                root.register_hook(lambda gradient: gradient * now)
        took_hold(recorder, "loss_scale_on")
        original(tensors, *args, **kwargs)

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        held = [
            p for group in optimizer.param_groups for p in group["params"] if p.grad is not None
        ]
        if any(not bool(torch.isfinite(p.grad).all()) for p in held):
            state["scale"] = max(1.0, state["scale"] / 2)
            for parameter in held:
                parameter.grad = None

    torch.autograd.backward = backward
    register_optimizer_step_pre_hook(before)

"""No cure but a gauge: the gradient norm right after the last backward pass, and again when the
optimizer steps.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook


def install(recorder: Any) -> None:
    original = torch.autograd.backward
    rows: list[list[float]] = []
    recorder.facts["gradient_until_step"] = rows
    seen: list[torch.optim.Optimizer] = []
    after: dict[int, float] = {}

    def norm(optimizer: torch.optim.Optimizer) -> float:
        grads = [
            p.grad
            for group in optimizer.param_groups
            for p in group["params"]
            if p.grad is not None
        ]
        return float(sum(float(g.detach().double().pow(2).sum()) for g in grads) ** 0.5)

    def backward(*args: Any, **kwargs: Any) -> None:
        original(*args, **kwargs)
        for optimizer in seen:
            after[id(optimizer)] = norm(optimizer)

    def before_step(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if optimizer not in seen:
            seen.append(optimizer)
        elif id(optimizer) in after:
            rows.append([after[id(optimizer)], norm(optimizer)])

    torch.autograd.backward = backward
    register_optimizer_step_pre_hook(before_step)

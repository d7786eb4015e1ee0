"""Clear all gradients right after every optimizer step, or before the backward pass that follows an
update written by hand.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook


def install(recorder: Any) -> None:
    def clear(parameters: Iterable[torch.Tensor]) -> None:
        for parameter in parameters:
            parameter.grad = None

    def clear_held(optimizer: Any, args: Any, kwargs: Any) -> None:
        for group in optimizer.param_groups:
            clear(group["params"])

    register_optimizer_step_post_hook(clear_held)
    recorder.steps.on_manual_step.append(clear)

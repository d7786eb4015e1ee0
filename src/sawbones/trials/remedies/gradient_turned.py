"""Every gradient turned round for the optimizer's step, and back again after it."""

from __future__ import annotations

from typing import Any

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)


def install(recorder: Any) -> None:
    def turn(optimizer: Any, args: Any, kwargs: Any) -> None:
        held = [p.grad for group in optimizer.param_groups for p in group["params"]]
        with torch.no_grad():
            for gradient in held:
                if gradient is not None:
                    gradient.neg_()

    register_optimizer_step_pre_hook(turn)
    register_optimizer_step_post_hook(turn)

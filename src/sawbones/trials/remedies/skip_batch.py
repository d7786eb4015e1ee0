"""The optimizer takes no step from the gradients of the given steps: they are dropped right before
it.

What the forward pass of such a batch leaves elsewhere (running statistics of a normalisation)
stays.
"""

from __future__ import annotations

from typing import Any

from torch.optim.optimizer import register_optimizer_step_pre_hook

from sawbones.trials.remedies import took_hold


def install(recorder: Any, steps: list[int]) -> None:
    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        if recorder.step in steps:
            took_hold(recorder, "skipped_batches")
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    parameter.grad = None

    register_optimizer_step_pre_hook(before)

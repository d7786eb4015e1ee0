"""All micro-batches of an optimizer step are its first one, and the gradient of one large batch of
them is measured beside it.

A large batch of k equal parts has, for a mean, exactly the gradient of one part; for a sum, k times
that.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.data.dataloader import _BaseDataLoaderIter

from sawbones.observe.census import has_parameters
from sawbones.observe.hooks.losses import LOSSES

STEPS = 3


def install(recorder: Any) -> None:
    state: dict[str, Any] = {
        "batch": None,
        "from_loader": False,
        "call": None,
        "loss": None,
        "large": None,
    }
    rows: list[list[float]] = []
    recorder.facts["repeated_microbatch"] = rows
    real_next = _BaseDataLoaderIter.__next__
    real_call = nn.Module.__call__
    real_backward = torch.autograd.backward

    def same_batch(self: Any) -> Any:
        value = real_next(self)
        state["from_loader"] = True
        if recorder.microstep == 0 or state["batch"] is None:
            state["batch"] = value
        return state["batch"]

    def same_call(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if (
            recorder.depth == 0
            and not state["from_loader"]
            and torch.is_grad_enabled()
            and has_parameters(self)
        ):
            if recorder.microstep == 0 or state["call"] is None:
                state["call"] = (args, kwargs)
            args, kwargs = state["call"]
        return real_call(self, *args, **kwargs)

    def make(original: Any) -> Any:
        def loss(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if isinstance(result, torch.Tensor) and result.requires_grad and result.dim() == 0:
                state["loss"] = (result, kwargs.get("reduction", "mean"))
            return result

        return loss

    def backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
        if recorder.step < STEPS and recorder.microstep == 0 and state["loss"] is not None:
            state["large"] = _gradient_norm(recorder, state["loss"][0])
        real_backward(tensors, *args, **kwargs)

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        """At the step, since a loop may also divide the gradients themselves; a scaler has undone
        its scale by now.
        """
        held = [
            p.grad
            for group in optimizer.param_groups
            for p in group["params"]
            if p.grad is not None
        ]
        if recorder.step < STEPS and state["large"] and held:
            expected = state["large"] * (recorder.microstep if state["loss"][1] == "sum" else 1)
            rows.append(
                [
                    recorder.microstep,
                    float(torch.stack([g.double().norm() for g in held]).norm()),
                    expected,
                ]
            )

    def make_clip(original: Any) -> Any:
        def clip(parameters: Any, limit: Any, *args: Any, **kwargs: Any) -> Any:
            return original(parameters, math.inf, *args, **kwargs)

        return clip

    _BaseDataLoaderIter.__next__ = same_batch  # type: ignore[method-assign]
    nn.Module.__call__ = same_call  # type: ignore[method-assign]
    torch.autograd.backward = backward
    for name in LOSSES:
        if hasattr(functional, name):
            setattr(functional, name, make(getattr(functional, name)))
    for name in (
        "clip_grad_norm_",
        "clip_grad_value_",
    ):  # clipped gradients would compare equal whatever their sum was
        for owner in (nn.utils, nn.utils.clip_grad):
            setattr(owner, name, make_clip(getattr(owner, name)))
    register_optimizer_step_pre_hook(before)


def _gradient_norm(recorder: Any, loss: torch.Tensor) -> float | None:
    parameters = [p for p in recorder.census.trainable() if p.requires_grad]
    found = [
        g
        for g in torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
        if g is not None
    ]
    return float(torch.stack([g.double().norm() for g in found]).norm()) if found else None

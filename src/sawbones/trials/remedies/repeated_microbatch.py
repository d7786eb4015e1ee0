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
from sawbones.trace.operators import LOSSES

STEPS = 3


class _FirstMicrobatch:
    """What the first micro-batch of the current optimizer step was, and what came of it."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.batch: Any = None
        self.from_loader = False
        self.call: Any = None
        self.loss: Any = None
        self.large: float | None = None
        self.rows: list[list[float]] = []

    def before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """At the step, since a loop may also divide the gradients themselves; a scaler has undone
        its scale by now.
        """
        held = [
            p.grad
            for group in optimizer.param_groups
            for p in group["params"]
            if p.grad is not None
        ]
        if self.recorder.step < STEPS and self.large and held:
            expected = self.large * (self.recorder.microstep if self.loss[1] == "sum" else 1)
            self.rows.append(
                [
                    self.recorder.microstep,
                    float(torch.stack([g.double().norm() for g in held]).norm()),
                    expected,
                ]
            )


def install(recorder: Any) -> None:
    first = _FirstMicrobatch(recorder)
    recorder.facts["repeated_microbatch"] = first.rows
    same_batch = _make_next(first, _BaseDataLoaderIter.__next__)
    _BaseDataLoaderIter.__next__ = same_batch  # type: ignore[method-assign]
    nn.Module.__call__ = _make_call(first, nn.Module.__call__)  # type: ignore[method-assign]
    torch.autograd.backward = _make_backward(first, torch.autograd.backward)
    for name in LOSSES:
        if hasattr(functional, name):
            setattr(functional, name, _make_loss(first, getattr(functional, name)))
    # clipped gradients would compare equal whatever their sum was
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        for owner in (nn.utils, nn.utils.clip_grad):
            setattr(owner, name, _make_clip(getattr(owner, name)))
    register_optimizer_step_pre_hook(first.before_step)


def _make_next(first: _FirstMicrobatch, real_next: Any) -> Any:
    recorder = first.recorder

    def same_batch(self: Any) -> Any:
        value = real_next(self)
        first.from_loader = True
        if recorder.microstep == 0 or first.batch is None:
            first.batch = value
        return first.batch

    return same_batch


def _make_call(first: _FirstMicrobatch, real_call: Any) -> Any:
    recorder = first.recorder

    def same_call(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if (
            recorder.depth == 0
            and not first.from_loader
            and torch.is_grad_enabled()
            and has_parameters(self)
        ):
            if recorder.microstep == 0 or first.call is None:
                first.call = (args, kwargs)
            args, kwargs = first.call
        return real_call(self, *args, **kwargs)

    return same_call


def _make_loss(first: _FirstMicrobatch, original: Any) -> Any:
    def loss(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if isinstance(result, torch.Tensor) and result.requires_grad and result.dim() == 0:
            first.loss = (result, kwargs.get("reduction", "mean"))
        return result

    return loss


def _make_backward(first: _FirstMicrobatch, real_backward: Any) -> Any:
    recorder = first.recorder

    def backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
        if recorder.step < STEPS and recorder.microstep == 0 and first.loss is not None:
            first.large = _gradient_norm(recorder, first.loss[0])
        real_backward(tensors, *args, **kwargs)

    return backward


def _make_clip(original: Any) -> Any:
    def clip(parameters: Any, limit: Any, *args: Any, **kwargs: Any) -> Any:
        return original(parameters, math.inf, *args, **kwargs)

    return clip


def _gradient_norm(recorder: Any, loss: torch.Tensor) -> float | None:
    parameters = [p for p in recorder.census.trainable() if p.requires_grad]
    found = [
        g
        for g in torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
        if g is not None
    ]
    return float(torch.stack([g.double().norm() for g in found]).norm()) if found else None

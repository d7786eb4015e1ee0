"""Backward passes: `Tensor.backward` goes through `torch.autograd.backward`, so one wrapper sees
both. Under `diagnose` also `torch.autograd.grad` where it stands in their place: a loop that has
neither a backward pass nor an optimizer, and asks for the gradients of leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from sawbones.observe.interrupts import HOLDING
from sawbones.observe.patches import Patches
from sawbones.observe.tracing import is_tracing

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    threads, brief = recorder.threads, recorder.brief
    # Under a function mode torch calls its own grad() by name once more, which is this wrapper.
    passes = {"backward": 0, "asked": 0}

    def make(original: Any) -> Any:
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
            if is_tracing() or not (recorder.trains_here() or threads.resumes()):
                original(tensors, *args, **kwargs)
                return
            passes["backward"] += 1
            recorder.steps.heard_backward = True
            if brief.on and brief(brief.backward, tensors):
                threads.in_backward = True
                try:
                    original(tensors, *args, **kwargs)
                finally:
                    threads.in_backward = False
                brief.backward_over()
                return
            retain = kwargs.get("retain_graph", args[1] if len(args) > 1 else None)
            recorder.guard("backward", recorder.backward_begins, tensors, retain)
            threads.in_backward = True
            try:
                original(tensors, *args, **kwargs)
            finally:
                threads.in_backward = False
            recorder.guard("backward", recorder.backward_ends)

        return backward

    def make_grad(original: Any) -> Any:
        def grad(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            if is_tracing() or HOLDING.depth or any(passes.values()) or not recorder.trains_here():
                return original(outputs, inputs, *args, **kwargs)
            if not isinstance(inputs, (torch.Tensor, list, tuple)):
                inputs = tuple(inputs)  # an iterator can be read once
            params = [inputs] if isinstance(inputs, torch.Tensor) else list(inputs)
            again = kwargs.get("create_graph", args[2] if len(args) > 2 else False)
            trains = not again and _is_loss(outputs) and _are_leaves(params)
            trains = trains and not recorder.census.optimizers()
            if not trains or not recorder.guard("backward", recorder.steps.asks_for, params):
                return original(outputs, inputs, *args, **kwargs)
            retain = kwargs.get("retain_graph", args[1] if len(args) > 1 else None)
            recorder.guard("backward", recorder.backward_begins, outputs, retain)
            threads.in_backward, passes["asked"] = True, 1
            try:
                result = original(outputs, inputs, *args, **kwargs)
            finally:
                threads.in_backward, passes["asked"] = False, 0
            recorder.guard("backward", recorder.steps.got, result)
            recorder.guard("backward", recorder.backward_ends)
            return result

        return grad

    patches.replace(torch.autograd, "backward", make)
    if recorder.options.journal:
        patches.replace(torch.autograd, "grad", make_grad)


def _is_loss(outputs: Any) -> bool:
    one = outputs[0] if isinstance(outputs, (list, tuple)) and len(outputs) == 1 else outputs
    return isinstance(one, torch.Tensor) and one.numel() == 1 and one.requires_grad


def _are_leaves(params: list[Any]) -> bool:
    return bool(params) and all(
        isinstance(p, torch.Tensor) and p.is_leaf and p.requires_grad for p in params
    )

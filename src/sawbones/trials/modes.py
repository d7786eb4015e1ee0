"""Calls of a model in the mode that they should be in, and how far their answer is from the one
they would have given.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from sawbones.observe.census import has_parameters
from sawbones.observe.deep import DeepObserver
from sawbones.observe.fingerprints import tensors_in


def set_mode(recorder: Any, training: bool) -> None:
    """Every top-level call with gradients in training mode, or every one without them in evaluation
    mode.

    Modes are put back after the call. The fact under `modes` counts the calls that were found in
    the other mode and holds the distance of the two answers, measured once, on a copy, with the
    random streams put back.
    """
    real_call = nn.Module.__call__
    seen: dict[str, Any] = {"calls": 0, "changed": 0, "distance": 0.0}
    recorder.facts["modes"] = seen

    def __call__(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        with_gradients = torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
        if (
            recorder.depth
            or with_gradients is not training
            or not recorder.is_host()
            or not has_parameters(self)
        ):
            return real_call(self, *args, **kwargs)
        seen["calls"] += 1
        wrong = [m for m in self.modules() if getattr(m, "training", training) is not training]
        if not any(_depends_on_mode(m) for m in wrong):
            return real_call(self, *args, **kwargs)
        if not seen["changed"]:
            recorder.guard(
                "modes",
                lambda: seen.__setitem__("distance", _distance(self, args, kwargs, real_call)),
            )
        seen["changed"] += 1
        for module in wrong:
            module.training = training
        try:
            return real_call(self, *args, **kwargs)
        finally:
            for module in wrong:
                module.training = not training

    nn.Module.__call__ = __call__  # type: ignore[method-assign]


def _depends_on_mode(module: nn.Module) -> bool:
    if isinstance(module, nn.modules.dropout._DropoutNd):
        return module.p > 0
    if isinstance(module, (nn.modules.batchnorm._NormBase, nn.RNNBase, nn.MultiheadAttention)):
        return (
            not isinstance(module, nn.RNNBase | nn.MultiheadAttention) or float(module.dropout) > 0
        )
    return False


def _distance(model: nn.Module, args: Any, kwargs: Any, call: Any) -> float:
    answers = []
    DeepObserver.busy = True  # what the copy does is no event of the loop's
    try:
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())), torch.no_grad():
            for mode in (True, False):
                result = call(copy.deepcopy(model).train(mode), *args, **kwargs)
                answers.append(
                    [t.detach().double() for _, t in tensors_in(result) if t.is_floating_point()]
                )
    finally:
        DeepObserver.busy = False
    size = sum(float(t.norm()) for t in answers[1]) + 1e-12
    return sum(float((a - b).norm()) for a, b in zip(*answers, strict=True)) / size

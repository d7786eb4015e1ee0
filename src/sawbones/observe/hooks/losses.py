"""Loss functions of torch.nn.functional: which one, with which settings and shapes, and what it
gave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from sawbones.observe.patches import Patches
from sawbones.observe.tracing import is_tracing
from sawbones.trace.operators import LOSSES

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    inside = False
    brief = recorder.brief

    def make(original: Any) -> Any:
        def loss(*args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            if is_tracing() or inside or not recorder.is_host():
                return original(*args, **kwargs)
            if brief.on and (torch.is_grad_enabled() or brief.leave()):
                return original(*args, **kwargs)
            inside = True
            try:
                result = original(*args, **kwargs)
            finally:
                inside = False
            if (
                recorder.options.journal
                or recorder.graded
                or recorder.phase == "eval"
                or recorder.wants("loss")
            ):
                recorder.guard("loss", _note, recorder, original.__name__, args, kwargs, result)
            elif (
                not torch.is_grad_enabled()
            ):  # nothing of it is kept on this step but what it says of the phase
                recorder.phase = "eval"
            return result

        return loss

    for name in LOSSES:
        patches.replace(functional, name, make)


def _note(recorder: Recorder, name: str, args: Any, kwargs: Any, result: Any) -> None:
    if isinstance(result, torch.Tensor) and torch._C._functorch.is_functorch_wrapped_tensor(result):
        return  # a loss inside vmap or grad: its value is not known before the transform is done
    tensors = [a for a in args if isinstance(a, torch.Tensor)] + [
        v for v in kwargs.values() if isinstance(v, torch.Tensor)
    ]
    given = tensors[0] if tensors else None
    target = kwargs.get("target", tensors[1] if len(tensors) > 1 else None)
    weight = kwargs.get("weight")
    grad = bool(isinstance(result, torch.Tensor) and result.requires_grad)
    learns = (
        torch.is_grad_enabled() and not torch.is_inference_mode_enabled() and not recorder.graded
    )
    recorder.phase = "train" if learns else "eval"
    if grad and isinstance(target, torch.Tensor) and not recorder.unsure:
        recorder.target_seen(target, given, kwargs.get("ignore_index"))
    if recorder.phase == "eval":
        at = (recorder.step, recorder.batches.source)
        recorder.guard("answers", recorder.answers.graded, name, given, target, *at)
    if not recorder.wants("loss"):
        return
    data: dict[str, Any] = {
        "fn": name,
        "reduction": kwargs.get("reduction", "mean"),
        "ignore_index": kwargs.get("ignore_index"),
        "weight": isinstance(weight, torch.Tensor),
        "smoothing": kwargs.get("label_smoothing"),
        "grad": grad,
    }
    for key, tensor in (("input", given), ("target", target)):
        if isinstance(tensor, torch.Tensor):
            data[f"{key}_shape"] = list(tensor.shape)
            data[f"{key}_dtype"] = str(tensor.dtype).removeprefix("torch.")
    if isinstance(result, torch.Tensor):
        recorder.scalars.submit(result, lambda value: data.__setitem__("value", value))
    recorder.event("loss", data)

"""Backward passes: `Tensor.backward` goes through `torch.autograd.backward`, so one wrapper sees
both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from sawbones.observe.patches import Patches
from sawbones.observe.tracing import is_tracing

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    threads = recorder.threads

    def make(original: Any) -> Any:
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
            if is_tracing() or not recorder.trains_here():
                original(tensors, *args, **kwargs)
                return
            if recorder.brief.on and recorder.brief(recorder.brief.backward, tensors):
                run(tensors, *args, **kwargs)
                recorder.brief(recorder.brief.backward_over)
                return
            retain = kwargs.get("retain_graph", args[1] if len(args) > 1 else None)
            recorder.guard("backward", recorder.backward_begins, tensors, retain)
            run(tensors, *args, **kwargs)
            recorder.guard("backward", recorder.backward_ends)

        def run(tensors: Any, *args: Any, **kwargs: Any) -> None:
            threads.in_backward = True
            try:
                original(tensors, *args, **kwargs)
            finally:
                threads.in_backward = False

        return backward

    patches.replace(torch.autograd, "backward", make)

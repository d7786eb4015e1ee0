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
    threads, brief = recorder.threads, recorder.brief

    def make(original: Any) -> Any:
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
            if is_tracing() or not recorder.trains_here():
                original(tensors, *args, **kwargs)
                return
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

    patches.replace(torch.autograd, "backward", make)

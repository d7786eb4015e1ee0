"""Top-level module calls and train()/eval().

torch's global forward hooks are not told the keyword arguments, which is how most frameworks pass a
batch, so `Module.__call__` is wrapped instead; below the top level the wrapper is one attribute
read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from sawbones.observe.census import has_parameters
from sawbones.observe.patches import Patches
from sawbones.observe.tracing import is_tracing

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    is_compiling = torch.compiler.is_compiling
    transformed = torch._C._functorch.peek_interpreter_stack
    calls = recorder.calls
    brief = recorder.brief

    def make_call(original: Any) -> Any:
        def __call__(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if is_compiling() or getattr(calls, "depth", False) or not recorder.active:
                return original(self, *args, **kwargs)
            # Inside torch.func transforms tensors stand for many values at once: there is nothing
            # to read.
            if is_tracing() or transformed() is not None:
                return original(self, *args, **kwargs)
            if recorder.is_host() and not (brief.on and brief(brief.forward, self, args, kwargs)):
                recorder.guard("forward", recorder.forward_begins, self, args, kwargs)
            calls.depth = 1
            try:
                result = original(self, *args, **kwargs)
            finally:
                calls.depth = 0
            if recorder.phase == "eval" and recorder.is_host():
                recorder.guard("answers", _answered, recorder, self, result)
            return result

        return __call__

    def make_train(original: Any) -> Any:
        depth = 0

        def train(self: nn.Module, mode: bool = True) -> Any:
            nonlocal depth
            if is_tracing():
                return original(self, mode)
            depth += 1
            try:
                return original(self, mode)
            finally:
                depth -= 1
                if not depth and recorder.is_host() and has_parameters(self):
                    recorder.guard(
                        "mode",
                        recorder.event,
                        "mode",
                        {"module": type(self).__name__, "training": bool(mode)},
                    )

        return train

    patches.replace(nn.Module, "__call__", make_call)
    patches.replace(nn.Module, "train", make_train)


def _answered(recorder: Recorder, module: nn.Module, output: Any) -> None:
    if recorder.census.is_model(module) and not recorder.unsure:
        batches = recorder.batches
        recorder.answers.answered(output, batches.loaded, recorder.step, batches.source)

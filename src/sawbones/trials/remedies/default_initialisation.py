"""The model starts from torch's own initialisation: every layer that has one is reset at the first
call, from a random stream of its own.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from sawbones.observe.census import has_parameters
from sawbones.trials.remedies import took_hold


def install(recorder: Any) -> None:
    real_call = nn.Module.__call__
    done: set[int] = set()

    def __call__(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if not recorder.depth and id(self) not in done and has_parameters(self):
            done.add(id(self))
            _reset(self)
            took_hold(recorder, "default_initialisation")
        return real_call(self, *args, **kwargs)

    nn.Module.__call__ = __call__  # type: ignore[method-assign]


def _reset(model: nn.Module) -> None:
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())), torch.no_grad():
        torch.manual_seed(0)
        for module in model.modules():
            reset = getattr(module, "reset_parameters", None)
            if callable(reset) and type(module).__module__.startswith("torch.nn"):
                reset()

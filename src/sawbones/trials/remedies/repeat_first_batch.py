"""Train on the first batches only: each loader gives them again and again; without a loader, what
reaches model and loss is replaced.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data.dataloader import _BaseDataLoaderIter

from sawbones.trace.operators import LOSSES


def install(recorder: Any, count: int = 1) -> None:
    state: dict[str, Any] = {"from_loader": False, "calls": [], "made": 0, "targets": {}}
    held: dict[
        int, tuple[Any, list[Any]]
    ] = {}  # data set -> itself, kept alive, and its first batches: validation has its own
    real_next = _BaseDataLoaderIter.__next__
    real_call = nn.Module.__call__
    given: dict[int, int] = {}

    def same_batches(self: Any) -> Any:
        value = real_next(self)
        state["from_loader"] = True
        dataset = self._dataset
        _, batches = held.setdefault(id(dataset), (dataset, []))
        if len(batches) < count:
            batches.append(value)
        turn = given[id(dataset)] = given.get(id(dataset), -1) + 1
        return batches[turn % len(batches)]

    def same_calls(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        outer = recorder.depth == 0 and recorder.census.is_model(self)
        if outer and not state["from_loader"] and torch.is_grad_enabled():
            if len(state["calls"]) < count:
                state["calls"].append((args, kwargs))
            state["turn"] = state["made"] % len(state["calls"])
            state["made"] += 1
            args, kwargs = state["calls"][state["turn"]]
        return real_call(self, *args, **kwargs)

    _BaseDataLoaderIter.__next__ = same_batches  # type: ignore[method-assign]
    nn.Module.__call__ = same_calls  # type: ignore[method-assign]
    for name in LOSSES:
        if hasattr(functional, name):
            setattr(functional, name, _same_target(getattr(functional, name), name, state))


def _same_target(original: Any, name: str, state: dict[str, Any]) -> Any:
    def loss(given: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        if (
            not state["from_loader"]
            and torch.is_grad_enabled()
            and isinstance(target, torch.Tensor)
        ):
            key = (name, target.dim(), state.get("turn", 0))
            target = state["targets"].setdefault(key, target)  # also for a smaller last batch
        return original(given, target, *args, **kwargs)

    return loss

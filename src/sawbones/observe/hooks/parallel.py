"""Distributed training: wrapping in DDP, no_sync, and collectives."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from sawbones.observe.patches import Patches

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

COLLECTIVES = (
    "all_reduce", "broadcast", "all_gather", "all_gather_into_tensor", "reduce", "reduce_scatter", "reduce_scatter_tensor",
    "all_to_all", "barrier", "scatter", "gather", "all_gather_object", "broadcast_object_list",
)  # fmt: skip


def install(recorder: Recorder, patches: Patches) -> None:
    if not distributed.is_available():
        return

    def make_init(original: Any) -> Any:
        def __init__(self: Any, module: Any, *args: Any, **kwargs: Any) -> None:
            original(self, module, *args, **kwargs)
            if recorder.is_host():
                data = {"cls": "DistributedDataParallel", "world_size": distributed.get_world_size()}
                data["find_unused_parameters"] = bool(kwargs.get("find_unused_parameters", False))
                recorder.guard("parallel", recorder.event, "parallel", data)

        return __init__

    def make_no_sync(original: Any) -> Any:
        @contextlib.contextmanager
        def no_sync(self: Any) -> Iterator[None]:
            if recorder.is_host():
                recorder.guard("parallel", recorder.event, "parallel", {"cls": "no_sync"})
            with original(self):
                yield

        return no_sync

    def make_collective(original: Any) -> Any:
        def collective(*args: Any, **kwargs: Any) -> Any:
            if recorder.is_host() and not torch.compiler.is_compiling():
                shape = next((list(a.shape) for a in args if isinstance(a, torch.Tensor)), None)
                recorder.guard("collective", recorder.event, "collective", {"op": original.__name__, "shape": shape})
            return original(*args, **kwargs)

        return collective

    patches.replace(DistributedDataParallel, "__init__", make_init)
    patches.replace(DistributedDataParallel, "no_sync", make_no_sync)
    for name in COLLECTIVES:
        patches.replace(distributed, name, make_collective)

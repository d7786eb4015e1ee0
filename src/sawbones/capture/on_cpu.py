"""A script that asks for a GPU gets the CPU: for replays on a machine without one, and for searches
that fork.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from sawbones.observe.operators import OperatorStream

if TYPE_CHECKING:
    from sawbones.observe.launch import Session

_NOTHING = (
    "set_device",
    "synchronize",
    "empty_cache",
    "reset_peak_memory_stats",
    "reset_max_memory_allocated",
    "ipc_collect",
)
_ZERO = (
    "max_memory_allocated",
    "memory_allocated",
    "max_memory_reserved",
    "memory_reserved",
    "current_device",
)


def on_cpu() -> OperatorStream:
    return OperatorStream(_called)


def _called(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if getattr(func, "__name__", "") == "cuda":
        return args[0]
    changed = {key: here(value) for key, value in kwargs.items() if key != "pin_memory"}
    return func(*(here(value) for value in args), **changed)


def here(value: Any) -> Any:
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return (
        "cpu"
        if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:"))
        else value
    )


def attach(session: Session) -> None:
    def ready(recorder: Any) -> None:
        for name in _NOTHING:
            setattr(torch.cuda, name, lambda *args, **kwargs: None)
        for name in _ZERO:
            setattr(torch.cuda, name, lambda *args, **kwargs: 0)
        on_cpu().start()

    session.on_ready.append(ready)

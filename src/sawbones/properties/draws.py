"""A model asked without chance: what it draws by itself is the same number in every place, so that an
answer belongs to its example alone.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_MIDDLES = {"randn": 0.0, "normal": 0.0, "rand": 0.5, "uniform": 0.5, "bernoulli": 1.0}


class NothingDrawn(TorchDispatchMode):
    """Normal numbers are 0, uniform ones the middle of their range, and a coin that may fall shows
    its face. Other draws stay as they are.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        kind = name.strip("_").removesuffix("_like")
        middle = _MIDDLES.get(kind)
        if middle is None or func.namespace != "aten" or not isinstance(made, torch.Tensor):
            return made
        if kind == "bernoulli":
            return made.copy_(_possible(name, args, kwargs or {}, made))
        if kind == "normal":
            return made.copy_(_mean(name, args, kwargs or {}))
        if kind == "uniform":
            low, high = (*args[1:3], *(0.0, 1.0)[len(args) - 1 :])[:2]
            middle = (low + high) / 2
        return made.fill_(middle)


def _possible(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], made: torch.Tensor
) -> torch.Tensor:
    rate = args[1] if len(args) > 1 else kwargs.get("p")
    if rate is None:
        rate = 0.5 if name.endswith("_") else args[0]
    return torch.as_tensor(rate, dtype=made.dtype, device=made.device) > 0


def _mean(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = args[1:] if name.endswith("_") else args
    mean = given[0] if given else kwargs.get("mean", 0.0)
    return torch.as_tensor(mean)

"""The softmax of one line gives logarithms of probabilities instead: a loss that takes the softmax
of them is then right.

Only the softmax over that many classes at that line is changed; attention inside the same call
keeps its own.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.nn import functional

from sawbones.trials.remedies import took_hold


def install(recorder: Any, file: str, line: int, classes: int, ndim: int) -> None:
    log_softmax = torch.log_softmax
    busy = False

    def make(original: Any) -> Any:
        def softmax(input: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal busy
            if busy or not isinstance(input, torch.Tensor) or input.dim() != ndim:
                return original(input, *args, **kwargs)
            dim = kwargs.get("dim", args[0] if args else None)
            dim = dim if isinstance(dim, int) else (0 if ndim in (0, 1, 3) else 1)
            site = recorder.sites.find(sys._getframe(1))
            if (
                input.shape[dim] != classes
                or site is None
                or (site.file, site.line) != (file, line)
            ):
                return original(input, *args, **kwargs)
            took_hold(recorder, "softmax_removed")
            busy = True
            try:
                return log_softmax(input, dim)
            finally:
                busy = False

        return softmax

    for owner in (functional, torch, torch.Tensor):
        setattr(owner, "softmax", make(owner.softmax))  # noqa: B010 (mypy knows no assignment to a function of a module)

"""Divide the gradient of every backward's root by a number. The value of the loss stays as the
script computed it.
"""

from __future__ import annotations

from typing import Any

import torch


def install(recorder: Any, count: float) -> None:
    original = torch.autograd.backward

    def backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
        roots = (tensors,) if isinstance(tensors, torch.Tensor) else tuple(tensors)
        for root in roots:
            if isinstance(root, torch.Tensor) and root.requires_grad and not root.is_leaf:
                root.register_hook(lambda gradient: gradient / count)
        original(tensors, *args, **kwargs)

    torch.autograd.backward = backward

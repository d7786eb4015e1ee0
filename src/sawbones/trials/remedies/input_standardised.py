"""Standardise what enters the first learned layer, feature by feature, with the statistics of the
first batch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.RNNBase, nn.ConvTranspose2d)


def install(recorder: Any) -> None:
    chosen: dict[str, Any] = {}
    real_call = nn.Module.__call__

    def call(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        first = (
            isinstance(self, LAYERS)
            and args
            and isinstance(args[0], torch.Tensor)
            and not args[0].requires_grad
        )
        if first and chosen.get("layer") in (None, self) and args[0].is_floating_point():
            if "layer" not in chosen:
                chosen.update(layer=self, **_statistics(self, args[0].detach()))
            args = ((args[0] - chosen["mean"]) / chosen["std"], *args[1:])
        return real_call(self, *args, **kwargs)

    nn.Module.__call__ = call  # type: ignore[method-assign]


def _statistics(layer: nn.Module, given: torch.Tensor) -> dict[str, torch.Tensor]:
    """Features lie in the last dimension, channels of a convolution in the second."""
    kept = (
        1
        if isinstance(layer, (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose2d))
        and given.dim() > 2
        else given.dim() - 1
    )
    dims = [d for d in range(given.dim()) if d != kept]
    mean = given.mean(dims, keepdim=True)
    std = (given - mean).square().mean(dims, keepdim=True).sqrt()
    return {"mean": mean, "std": torch.where(std > 1e-6, std, torch.ones_like(std))}

"""Whether pictures that a model is given would be smoother with their colours read as the last axis.

A file of pixels holds height, width, colour. Reshaped to colour, height, width instead of permuted,
neighbours in the picture are colours of one pixel or pixels of other places.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from sawbones.observe.deep.modules import ModuleCall

_COLOURS = (3, 4)
_MIN_SIDE = 8  # pixels
_MIN_PICTURES = 8
_MAX_PICTURES = 64


def measure(calls: Iterable[ModuleCall]) -> dict[str, Any] | None:
    """The sizes of steps from pixel to pixel read that way, over those as given, along both axes."""
    for call in calls:
        for given in (*call.args, *call.kwargs.values()):
            if _are_pictures(given):
                return _compared(given.detach()[:_MAX_PICTURES].float())
    return None


def _are_pictures(given: Any) -> bool:
    return (
        isinstance(given, torch.Tensor)
        and given.dim() == 4
        and given.is_floating_point()
        and not given.requires_grad
        and given.shape[0] >= _MIN_PICTURES
        and given.shape[1] in _COLOURS
        and min(given.shape[2:]) >= _MIN_SIDE
    )


def _compared(pictures_NCHW: torch.Tensor) -> dict[str, Any] | None:
    number, colours, height, width = pictures_NCHW.shape
    turned = pictures_NCHW.reshape(number, height, width, colours).movedim(-1, 1)
    across, down = _steps(pictures_NCHW)
    if across <= 0 or down <= 0:
        return None
    other_across, other_down = _steps(turned)
    return {
        "shape": list(pictures_NCHW.shape),
        "across": other_across / across,
        "down": other_down / down,
    }


def _steps(pictures: torch.Tensor) -> tuple[float, float]:
    across = (pictures[..., 1:] - pictures[..., :-1]).abs().mean()
    down = (pictures[:, :, 1:] - pictures[:, :, :-1]).abs().mean()
    return float(across), float(down)

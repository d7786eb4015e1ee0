"""The smallest and largest value of a tensor that stood in the frames of a crash."""

from __future__ import annotations

import math
from typing import Any

import torch

MOST_VALUES = 1_000_000
MOST_ORDERED = 4096  # of lengths, ids: whether they fall from one to the next


def value_range(value: torch.Tensor) -> dict[str, Any]:
    """Empty where reading the values could wait for a device, or take long."""
    plain = type(value) in (torch.Tensor, torch.nn.Parameter)
    readable = value.device.type == "cpu" and value.layout is torch.strided
    if not plain or not readable or value.is_complex() or not 0 < value.numel() <= MOST_VALUES:
        return {}
    try:
        return _range(value.detach())
    except RuntimeError:  # a dtype that has no minimum, a storage that is gone
        return {}


def _range(value: torch.Tensor) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if value.is_floating_point():
        finite = torch.isfinite(value)
        found["nonfinite"] = int(value.numel() - int(finite.sum()))
        value = value[finite]
    if value.numel():
        low, high = (float(bound) for bound in torch.aminmax(value))
        if math.isfinite(low) and math.isfinite(high):
            found |= {"low": low, "high": high}
    if value.dim() == 1 and not value.is_floating_point() and value.numel() <= MOST_ORDERED:
        found["falling"] = bool((value[1:] <= value[:-1]).all())
    return found

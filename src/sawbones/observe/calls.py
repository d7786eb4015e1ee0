"""What is noted of a top-level call of a model."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from sawbones.observe.batches import shapes_of
from sawbones.observe.fingerprints import tensors_in


def is_training(module: nn.Module) -> bool:
    """Some scripts take the attribute away from modules that have no use for it."""
    return bool(getattr(module, "training", True))


def forward_facts(module: nn.Module, inner: nn.Module, grad: bool, given: Any) -> dict[str, Any]:
    found = tensors_in(given)
    device = next((t.device.type for _, t in found), "cpu")
    autocast = (
        str(torch.get_autocast_dtype(device)).removeprefix("torch.")
        if torch.is_autocast_enabled(device)
        else None
    )
    return {
        "module": type(inner).__name__,
        "training": is_training(module),
        "grad": grad,
        "inference": torch.is_inference_mode_enabled(),
        "autocast": autocast,
        "compiled": inner is not module and hasattr(module, "_orig_mod"),
        "inputs": shapes_of(found),
    }

"""Every loss function gets its targets in another order: a fixed permutation of each batch. Ignored
targets stay in place.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from sawbones.trace.operators import LOSSES
from sawbones.trials.remedies import took_hold


def install(recorder: Any) -> None:
    generator = torch.Generator().manual_seed(
        0
    )  # its own stream: the script's must stay where they are

    def shuffled(target: torch.Tensor, ignore: int) -> torch.Tensor:
        if target.is_floating_point():
            order = torch.randperm(target.shape[0], generator=generator).to(target.device)
            return target[order]
        flat = target.reshape(-1).clone()
        counted = flat != ignore
        values = flat[counted]
        flat[counted] = values[torch.randperm(len(values), generator=generator).to(target.device)]
        return flat.reshape(target.shape)

    def make(original: Any) -> Any:
        def loss(given: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(target, torch.Tensor) and target.dim() and torch.is_grad_enabled():
                took_hold(recorder, "shuffled_labels")
                target = shuffled(target, int(kwargs.get("ignore_index", -100)))
            return original(given, target, *args, **kwargs)

        return loss

    for name in LOSSES:
        if hasattr(functional, name):
            setattr(functional, name, make(getattr(functional, name)))

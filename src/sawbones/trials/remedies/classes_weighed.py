"""Weigh the classes of cross entropy and binary cross entropy by the inverse of how often they have
been seen so far.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional


def install(recorder: Any) -> None:
    counts: dict[int, int] = {}
    real_cross_entropy, real_nll = functional.cross_entropy, functional.nll_loss
    real_binary = functional.binary_cross_entropy_with_logits

    def seen(target: torch.Tensor) -> None:
        for value, number in zip(
            *(t.tolist() for t in torch.unique(target, return_counts=True)), strict=True
        ):
            counts[int(value)] = counts.get(int(value), 0) + number

    def weights(num_classes: int, like: torch.Tensor) -> torch.Tensor:
        total = sum(counts.get(c, 0) for c in range(num_classes))
        values = [total / (num_classes * max(counts.get(c, 0), 1)) for c in range(num_classes)]
        return torch.tensor(values, dtype=like.dtype, device=like.device).clamp(max=200.0)

    def by_class(original: Any) -> Any:
        def loss(given: Any, target: Any, weight: Any = None, *args: Any, **kwargs: Any) -> Any:
            indices = (
                isinstance(target, torch.Tensor)
                and not target.is_floating_point()
                and given.dim() in (2, 4)
            )
            if indices and weight is None and torch.is_grad_enabled():
                seen(target)
                weight = weights(given.shape[1], given)
            return original(given, target, weight, *args, **kwargs)

        return loss

    def binary(given: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        single = (
            given.numel() == given.shape[0] or given.dim() >= 3
        )  # one answer per sample, or per place of a map
        if not args and kwargs.get("pos_weight") is None and torch.is_grad_enabled() and single:
            seen(target)
            pair = weights(2, given)
            kwargs["pos_weight"] = pair[1] / pair[0]
        return real_binary(given, target, *args, **kwargs)

    functional.cross_entropy = by_class(real_cross_entropy)
    functional.nll_loss = by_class(real_nll)
    functional.binary_cross_entropy_with_logits = binary  # type: ignore[assignment]

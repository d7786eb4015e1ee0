"""AdamW with decay where it belongs, the schedule, and the norms of the gradients."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from .config import OptimConfig


def decay_groups(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """(decayed, not decayed): matrices decay; biases and the gains of norms do not, whatever they
    are named.
    """
    decayed: list[nn.Parameter] = []
    rest: list[nn.Parameter] = []
    for parameter in model.parameters():
        if parameter.requires_grad:
            (decayed if parameter.ndim >= 2 else rest).append(parameter)
    return decayed, rest


def build_optimizer(model: nn.Module, config: OptimConfig) -> AdamW:
    decayed, rest = decay_groups(model)
    groups = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": rest, "weight_decay": 0.0},
    ]
    return AdamW(groups, lr=config.lr, betas=(config.beta1, config.beta2), eps=1e-8, foreach=True)


def warmup_cosine(warmup: int, total: int, final_share: float) -> Callable[[int], float]:
    """Share of the peak LR at optimizer step t (from 0): linear up over `warmup` steps, then a half
    cosine down.

    The first step already has 1/warmup of the peak: an LR of 0 there would waste it.
    """

    def share(step: int) -> float:
        if step < warmup:
            return (step + 1) / warmup
        progress = min(1.0, (step - warmup) / max(1, total - warmup))
        return final_share + (1 - final_share) * 0.5 * (1 + math.cos(math.pi * progress))

    return share


def build_schedule(optimizer: Optimizer, config: OptimConfig, total_steps: int) -> LambdaLR:
    """To be stepped once after each optimizer step that really happened. Warm-up never takes more
    than a tenth.
    """
    warmup = min(config.warmup, max(1, total_steps // 10)) if config.warmup else 0
    return LambdaLR(optimizer, warmup_cosine(warmup, total_steps, config.final_lr_share))


def layer_of(parameter_name: str) -> str:
    """`decoder.1.attention.query.weight` belongs to `decoder.1`, `head.weight` to `head`."""
    parts = parameter_name.removeprefix("module.").split(".")
    return ".".join(parts[:2]) if len(parts) > 2 and parts[1].isdigit() else parts[0]


def gradient_norms(named_parameters: Iterable[tuple[str, nn.Parameter]]) -> dict[str, Tensor]:
    """L2 norm of each layer's gradient, left on the device."""
    by_layer: dict[str, list[Tensor]] = defaultdict(list)
    for name, parameter in named_parameters:
        if parameter.grad is not None:
            by_layer[layer_of(name)].append(parameter.grad)
    return {layer: torch.nn.utils.get_total_norm(grads) for layer, grads in by_layer.items()}

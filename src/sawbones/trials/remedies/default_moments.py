"""Betas, eps and the like at the defaults of the optimizer's class, momentum at most 0.9."""

from __future__ import annotations

import inspect
from typing import Any

from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

NAMES = ("betas", "eps", "alpha", "rho", "momentum_decay")
MOMENTUM = 0.9  # what nearly every recipe has


def usual(cls: type) -> dict[str, Any]:
    """What the class takes for these settings when nobody says anything."""
    given = inspect.signature(cls).parameters
    return {n: given[n].default for n in NAMES if n in given}


def install(recorder: Any) -> None:
    held: dict[int, list[dict[str, Any]]] = {}

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        defaults = usual(type(optimizer))
        kept = []
        for group in optimizer.param_groups:
            changed = {n: v for n, v in defaults.items() if n in group and v is not None}
            if isinstance(group.get("momentum"), float) and group["momentum"] > MOMENTUM:
                changed["momentum"] = MOMENTUM
            kept.append({n: group[n] for n in changed})
            group.update(changed)
        held[id(optimizer)] = kept

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        for group, kept in zip(optimizer.param_groups, held.pop(id(optimizer), []), strict=False):
            group.update(kept)

    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)

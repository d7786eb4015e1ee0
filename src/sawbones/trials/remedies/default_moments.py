"""Betas, eps and the like at the defaults of the optimizer's class, momentum at most 0.9."""

from __future__ import annotations

import inspect
from typing import Any

from sawbones.trials.remedies import during_steps

NAMES = ("betas", "eps", "alpha", "rho", "momentum_decay")
MOMENTUM = 0.9  # what nearly every recipe has


def usual(cls: type) -> dict[str, Any]:
    """What the class takes for these settings when nobody says anything."""
    given = inspect.signature(cls).parameters
    return {n: given[n].default for n in NAMES if n in given}


def install(recorder: Any) -> None:
    def changed(optimizer: Any, group: dict[str, Any]) -> dict[str, Any]:
        found = {n: v for n, v in usual(type(optimizer)).items() if v is not None}
        momentum = group.get("momentum")
        too_much = isinstance(momentum, float) and momentum > MOMENTUM
        return found | ({"momentum": MOMENTUM} if too_much else {})

    during_steps(changed)

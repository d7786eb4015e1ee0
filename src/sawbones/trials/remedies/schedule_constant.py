"""Every step at the learning rate that the optimizer was built with, whatever sets it since."""

from __future__ import annotations

from typing import Any

from sawbones.trials.remedies import during_steps


def install(recorder: Any) -> None:
    def built(optimizer: Any, group: dict[str, Any]) -> dict[str, Any]:
        rate = group.get("initial_lr", optimizer.defaults.get("lr"))
        known = isinstance(rate, float) and rate > 0 and isinstance(group.get("lr"), float | int)
        return {"lr": rate} if known else {}

    during_steps(built)

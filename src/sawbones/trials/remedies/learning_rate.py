"""Multiply every learning rate by a factor, whatever sets it: the optimizer sees lr * factor during
its step only.
"""

from __future__ import annotations

from typing import Any

from sawbones.trials.remedies import during_steps


def install(recorder: Any, factor: float) -> None:
    during_steps(lambda optimizer, group: {"lr": group.get("lr", 0) * factor})

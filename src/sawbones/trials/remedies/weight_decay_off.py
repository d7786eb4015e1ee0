"""No weight decay: every optimizer sees 0 during its step only."""

from __future__ import annotations

from typing import Any

from sawbones.trials.remedies import during_steps


def install(recorder: Any) -> None:
    during_steps(lambda optimizer, group: {"weight_decay": 0.0})

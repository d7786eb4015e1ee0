"""The learning rate of the first steps rises in a straight line to what the loop asks for."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from sawbones.trials.remedies import during_steps


def install(recorder: Any, steps: float) -> None:
    taken: Counter[int] = Counter()

    def risen(optimizer: Any, group: dict[str, Any]) -> dict[str, Any]:
        taken[id(optimizer)] += 1
        count = math.ceil(taken[id(optimizer)] / len(optimizer.param_groups))
        return {"lr": group.get("lr", 0) * min(1.0, count / steps)}

    during_steps(risen)

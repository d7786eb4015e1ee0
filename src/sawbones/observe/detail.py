"""How much of a step is written down: all of it at first, then a sample, sooner where steps are so
short that it would be felt.
"""

from __future__ import annotations

import statistics

from torch import distributed as dist

RUN_IN_FULL = 500  # steps; after that the events of every 25th step, and rare kinds always
DIAGNOSE_IN_FULL = 5000  # a diagnosis reads more and pays more
EVERY = 25  # every second of them is one on which statistics are taken in full
# they stand between steps, so a sample of steps would lose most evaluations: kept up to here
EVALUATION_EVENTS = 20_000
_COMMON = frozenset(
    (
        "batch",
        "forward",
        "loss",
        "backward",
        "scale",
        "unscale",
        "scaler_step",
        "scaler_update",
        "clip",
        "step",
        "zero_grad",
    )
)
_ALWAYS = 25  # steps in full before their price is known
_FELT = 0.03  # share of the step that full detail may take: the budget of watching on a CPU


class Detail:
    def __init__(self, diagnosing: bool) -> None:
        self.in_full = DIAGNOSE_IN_FULL if diagnosing else RUN_IN_FULL
        self._shares: list[float] | None = None if diagnosing else []
        self._evaluation_left = EVALUATION_EVENTS

    every = EVERY

    def keeps(self, kind: str, step: int, phase: str) -> bool:
        if step < self.in_full or step % EVERY == 0 or kind not in _COMMON:
            return True
        return phase == "eval" and self._evaluation_left > 0

    def kept(self, phase: str) -> None:
        if phase == "eval":
            self._evaluation_left -= 1

    def stepped(self, step: int, watch_ms: float, step_ms: float) -> bool:
        """True once: from the next step on a sample must do."""
        if self._shares is None:
            return False
        self._shares.append(watch_ms / step_ms if step_ms > 0 else 0.0)
        if len(self._shares) < _ALWAYS:
            return False
        # Ranks are compared step by step: a rule that depends on the clock would leave each with
        # other steps.
        felt = statistics.median(self._shares) > _FELT and not (
            dist.is_available() and dist.is_initialized()
        )
        self._shares = None
        if felt:
            self.in_full = step + 1
        return felt

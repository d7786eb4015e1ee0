"""The loss of a run and of the same run under a remedy, read over the steps that both took."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sawbones.schema import Run
from sawbones.stats.series import end_level, finite, start_level

ENOUGH = 4  # steps; medians of fewer say nothing


@dataclass(frozen=True)
class Pair:
    steps: int
    begin: float  # level of the first losses without the remedy
    was: float  # where the loss ended without the remedy
    now: float  # where it ended with it

    @property
    def is_short(self) -> bool:
        return self.steps < ENOUGH or not math.isfinite(self.begin)

    def lower(self, share: float) -> bool:
        """Ends lower by `share` of where it began, or finite where it was not."""
        if not math.isfinite(self.now):
            return False
        return not math.isfinite(self.was) or self.was - self.now > share * max(
            abs(self.begin), 1e-12
        )

    def __str__(self) -> str:
        return (
            f"the loss ends at {self.now:.4g} instead of {self.was:.4g} after {self.steps} "
            f"steps (it began at {self.begin:.4g})"
        )


def compare(run: Run, cured: Run) -> Pair:
    steps = min(run.num_steps, cured.num_steps)
    known = finite(run.losses[:steps])
    begin = start_level(known) if len(known) else math.nan
    return Pair(steps, begin, end_level(run.losses[:steps]), end_level(cured.losses[:steps]))

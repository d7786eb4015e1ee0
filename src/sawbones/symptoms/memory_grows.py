"""Memory grows without end

## What it measures
The memory in use from the first third of the run to its end: up by 15 % and 64 MB, and up from
tenth to tenth.

## Null
Memory after the first third, when caches have settled.

## What it may mean
Losses or outputs kept with their graphs, a list that is never emptied, a growing cache.

## First commands
- `sawbones profile train.py` names the owners of the memory at the peak, by line.
- Where it grows by a steady amount per step, a tensor with its graph is kept: look for sums and
  lists of losses without `.item()` or `.detach()`.
"""

from __future__ import annotations

import numpy as np

from sawbones.evidence import NothingToJudge
from sawbones.evidence.limits import symptoms as limits
from sawbones.schema import Run, Symptom
from sawbones.stats.levels import part
from sawbones.stats.series import finite

CLASS = "notable"
CALLED = ("memory grows", "memory leak", "leak of memory", "ram grows", "memory increases")
NEEDS = ("steps",)
CAUSES = ("loop.memory-leak", "loop.out-of-memory")


def look(run: Run) -> Symptom | None:
    used = finite(run.steps["memory_mb"])
    if not limits.STEPS_TO_TELL.reached_by(len(used)):
        raise NothingToJudge(f"memory was measured at {len(used)} steps: too few to tell")
    late = part(used, 1 / 3, 1)
    tenths = np.array([np.median(block) for block in np.array_split(late, 10)])
    grown, first = float(tenths[-1] - tenths[0]), float(tenths[0])
    if (
        first <= 0
        or not limits.MEMORY_GROWTH.reached_by(grown / first)
        or not limits.MEMORY_GROWTH_MB.reached_by(grown)
        or not limits.STEADILY.reached_by(float(np.mean(np.diff(tenths) > 0)))
    ):
        return None
    text = f"memory grows from {first:.0f} MB to {tenths[-1]:.0f} MB over the last two thirds"
    return Symptom(
        "", CLASS, text, float(tenths[-1]), first, (run.num_steps // 3, run.num_steps - 1)
    )

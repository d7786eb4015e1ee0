"""Steps take longer and longer

## What it measures
The time of a step in the last quarter against that of the second quarter, on steps that were not
looked into deeply, our own work left out: half as long again, by more than the noise.

## Null
The run's own earlier pace and its noise.

## What it may mean
Graphs that are kept and walked again, growing lists, longer sequences, a machine that is shared.

## First commands
- `sawbones profile train.py --steps 30`, then `--steps 300`: the line whose share grows is it.
- `sawbones explain memory-grows`: graphs that are kept are walked again.
"""

from __future__ import annotations

import numpy as np

from sawbones.evidence import NothingToJudge
from sawbones.evidence.limits import symptoms as limits
from sawbones.schema import Run, Symptom
from sawbones.stats.levels import apart, level, part
from sawbones.stats.waiting import hears_operators

CLASS = "notable"
CALLED = ("slow", "slower and slower", "slows down", "steps get slower", "step time grows")
NEEDS = ("steps",)
CAUSES = ("loop.memory-leak", "pipeline.*", "loop.sync-stall")


def look(run: Run) -> Symptom | None:
    if hears_operators(run):
        raise NothingToJudge("every operator was listened to, which takes time: see sawbones run")
    took, ours, deep = (run.steps[name] for name in ("step_ms", "watch_ms", "deep"))
    plain = (took - np.nan_to_num(ours))[(deep == 0) & np.isfinite(took)]
    if not limits.STEPS_TO_TELL.reached_by(len(plain)):
        raise NothingToJudge(f"{len(plain)} undisturbed steps are too few to tell")
    before, after = level(part(plain, 0.25, 0.5)), level(part(plain, 0.75, 1.0))
    third = level(part(plain, 0.5, 0.75))
    if (
        before.mean <= 0
        or not limits.SLOWER.reached_by(after.mean / before.mean)
        or not limits.APART.reached_by(apart(after, before))
        or not before.mean < third.mean < after.mean
    ):
        return None
    text = (
        f"a step takes {after.mean:.3g} ms at the end, {before.mean:.3g} ms in the second quarter"
    )
    return Symptom("", CLASS, text, after.mean, before.mean, (0, run.num_steps - 1))

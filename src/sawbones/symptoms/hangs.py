"""The script stands still

## What it measures
The watchdog's word: no step, no batch and no other event for far longer than this run's steps take.

## Null
The run's own pace.

## What it may mean
Ranks that wait for each other, a data loader whose workers wait for each other, a lock. The stacks
at that moment are in the recording.

## First commands
- `sawbones diagnose train.py` ends a script that stands still and names the line at which it stood.
- `num_workers=0` in the loader: if it runs then, the workers wait for each other.
- On several ranks compare the last event of each rank: the one that is behind, or elsewhere, is it.
"""

from __future__ import annotations

from sawbones.schema import Run, Symptom

CLASS = "ill"
CALLED = (
    "hangs",
    "stands still",
    "stuck",
    "deadlock",
    "freezes",
    "frozen",
    "no progress",
    "nccl timeout",
    "timeout",
)
NEEDS = ()
CAUSES = ("loop.*", "pipeline.*")


def look(run: Run) -> Symptom | None:
    if run.ending.kind != "hang":
        return None
    where = f" at {run.ending.site}" if run.ending.site is not None else ""
    text = f"the script stands still after {run.num_steps} steps{where}"
    return Symptom("", CLASS, text, None, None, (max(run.num_steps - 1, 0),))

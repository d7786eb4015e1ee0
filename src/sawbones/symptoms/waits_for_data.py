"""Training waits for its data

## What it measures
The median share of a step that passes before its batch is there, our own work left out.

## Null
Half of the step.

## What it may mean
Too few workers, slow decoding or tokenising, files on a slow disk.

## First commands
- `sawbones profile train.py` shows how much of a step is waiting for its batch.
- `num_workers` doubled: half the wait, it is work that parallelises; the same wait, it is the disk
  or one lock.
"""

from __future__ import annotations

from sawbones.evidence import NothingToJudge
from sawbones.evidence.limits import symptoms as limits
from sawbones.schema import Run, Symptom
from sawbones.stats.waiting import hears_operators, waiting
from sawbones.trace.feeding import training_loader

CLASS = "notable"
CALLED = (
    "slow",
    "waits for data",
    "data loading",
    "dataloader slow",
    "gpu idle",
    "low utilisation",
    "low utilization",
    "gpu not used",
    "starved",
)
NEEDS = ("steps", "loaders")
CAUSES = ("pipeline.starved",)


def look(run: Run) -> Symptom | None:
    if hears_operators(run):
        raise NothingToJudge("every operator was listened to, which takes time: see sawbones run")
    found = waiting(run) if training_loader(run) is not None else None
    if found is None:
        raise NothingToJudge("fewer than 20 steps with a loader ran undisturbed")
    if not limits.WAITING.reached_by(found.share) or not limits.WAITING_MS.reached_by(
        found.wait_ms
    ):
        return None
    return Symptom(
        "",
        CLASS,
        f"{found.share:.0%} of a step is waiting for data ({found.wait_ms:.1f} ms of "
        f"{found.step_ms:.1f} ms)",
        found.share,
        None,
        (0, run.num_steps - 1),
    )

"""The script runs out of memory

## What it measures
The exception that ended the script: an allocation that was refused, on the device or the host.

## Null
Every allocation succeeds.

## What it may mean
At the first steps the model or the batch is too large; later, memory grows: graphs or outputs of
past steps are kept, or a longer sequence came by.

## First commands
- `sawbones profile train.py`: which lines and tensors hold the memory at the peak.
- At step 0 halve the batch: what is left over is weights, gradients and optimizer state. After many
  steps, look at `sawbones explain memory-grows`.
"""

from __future__ import annotations

from sawbones.schema import Run, Symptom
from sawbones.stats.failures import ran_out_of_memory

CLASS = "ill"
CALLED = ("out of memory", "oom", "cuda out of memory", "cannot allocate", "alloc")
NEEDS = ()
CAUSES = ("loop.out-of-memory", "loop.memory-leak", "data.*", "pipeline.*", "model.*")


def look(run: Run) -> Symptom | None:
    if not ran_out_of_memory(run):
        return None
    where = f" ({run.ending.site})" if run.ending.site is not None else ""
    said = (run.ending.message or "").split("\n")[0][:160]
    text = f"memory ran out after {run.num_steps} steps: {said}{where}"
    return Symptom("", CLASS, text, None, None, (max(run.num_steps - 1, 0),))

"""The loss is NaN or infinite

## What it measures
Losses of the run that are not finite, at steps that were taken. Of a loss that was not read at a
step nothing is said: the gradient, or the value that the backward pass began with, has to bear it
out. Steps that a scaler left out count only where the run ends non-finite.

## Null
No loss may be non-finite.

## What it may mean
From then on the weights are usually NaN too, and nothing is learned any more. Look at the step and
the operator named: a learning rate too high, a logarithm of zero, a division by zero, half
precision, a bad row of the data.

## First commands
- `sawbones run train.py` stops at nothing and names the first operator whose output is not finite,
  with its line; the failing step is kept and replays: `sawbones replay BUNDLE`.
- `sawbones try no-amp train.py`: healed, it is precision. `sawbones try lr=0.1 train.py`: healed,
  it is the size of the steps. Healed by neither, it is a value: a logarithm, a quotient, a row of
  the data.
"""

from __future__ import annotations

import math

import numpy as np

from sawbones.schema import Run, Symptom
from sawbones.stats.failures import first_nonfinite

CLASS = "ill"
CALLED = (
    "nan",
    "inf",
    "infinite",
    "loss is nan",
    "not a number",
    "nonfinite",
    "non finite",
    "overflow",
)
NEEDS = ("steps", "losses")
CAUSES = ("data.*", "pipeline.*", "model.*", "loss.*", "optimizer.*", "loop.*")


def look(run: Run) -> Symptom | None:
    losses = np.asarray(run.losses, np.float64)
    bad = ~np.isfinite(losses) & _borne_out(run, losses)
    if len(bad) and not bad[-1]:
        bad &= ~(np.nan_to_num(run.steps["skipped"]) > 0)
    if not bad.any():
        return None
    count, first = int(bad.sum()), int(run.steps["step"][int(np.argmax(bad))])
    kind = "NaN" if np.isnan(losses[bad]).all() else "not finite"
    born = first_nonfinite(run)
    where = f"; it came out of {born.op} at step {born.step}" if born is not None else ""
    if born is not None and born.site is not None:
        where += f" ({born.site})"
    return Symptom(
        "",
        CLASS,
        f"{count} of {len(losses)} losses are {kind}, the first at step {first}{where}",
        math.nan if kind == "NaN" else float(losses[bad][0]),
        None,
        (first,),
    )


def _borne_out(run: Run, losses: np.ndarray) -> np.ndarray:
    """Steps of which something else says that the value was there and not finite."""
    told = {
        event.step
        for event in run.of_kind("backward")
        if isinstance(event.data.get("value"), (int, float))
        and not math.isfinite(event.data["value"])
    }
    by_event = np.array([int(step) in told for step in run.steps["step"]], bool)
    spoiled = ~np.isfinite(run.steps["grad_norm"]) | ~np.isfinite(run.steps["param_norm"])
    return np.asarray(by_event | np.isinf(losses) | spoiled, bool)

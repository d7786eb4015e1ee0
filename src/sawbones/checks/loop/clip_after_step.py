"""Clipping after the step, or before backward, so that it has no effect

## What it sees
Where the clip stands between backward and step. A clip with no backward pass since the last step, followed by a backward pass
rather than by another step, touches gradients that are used up or not there yet. Fires when at least 80 % of the clips are like
that; proven when a step really used gradients longer than the limit. The earliest is step 2.

## Why it matters
The protection that the line promises is not there: the first outlier goes through unclipped.

## Looks like
Spikes and divergence although "gradients are clipped".

## Example
    loss.backward()
    optimizer.step()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)

## Use instead
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()

## Confirm it
The order of events is the proof, and the gradient norm at the steps, which exceeds the limit.

## False alarms
Two optimizers after one backward: the clip before the second step is followed by that step. A clip with an infinite limit that
logs the norm, and a limit that no gradient ever reached, change nothing either way.

## References
A variant of the misplaced zero_grad; found in forum threads that begin with "clipping does not help".
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sawbones.schema import Event, Evidence, Finding, Fix, Run
from sawbones.stats.protocol import sites_of

NEEDS = ("clipping", "backward", "steps")
EXPLAINS = ("loop.exploding-gradients", "loop.loss-spike")
EXPERIMENT = None
SHARE = 0.8


def check(run: Run) -> Iterator[Finding]:
    clips = run.of_kind("clip")
    idle = _idle(run)
    if len(clips) < 2 or len(idle) < SHARE * len(clips):
        return
    limits = [float(c.data["max_norm"]) for c in idle if c.data.get("max_norm") is not None]
    limit = float(np.median(limits)) if limits else math.inf
    if not math.isfinite(limit):
        return
    norms = run.steps["grad_norm"]
    by_norm = idle[0].data.get("fn") == "clip_grad_norm_"
    exceeded = [int(s) for s, n in zip(run.steps["step"], norms, strict=True) if n > limit * 1.001]
    matters = bool(exceeded) or not by_norm
    yield Finding(
        "loop.clip-after-step",
        "proven" if matters else "suspected",
        0.96 if matters else 0.5,
        "Clipping has no effect: it comes when the step has already used the gradients"
        if idle[0].data.get("norm", 0.0)
        else "Clipping has no effect: it comes before backward, when there are no gradients",
        sites_of(idle[0]),
        (
            Evidence(
                f"no backward pass between the last step and the clip, at {len(idle)} of {len(clips)} clips",
                "events",
                tuple(c.step for c in idle[:5]),
                len(idle) / len(clips),
                0.0,
            ),
            Evidence(
                f"the gradient norm at the step exceeds the limit of {limit:g} at {len(exceeded)} of {len(norms)} steps",
                "steps",
                tuple(exceeded[:5]),
                float(np.nanmax(norms)) if np.any(np.isfinite(norms)) else None,
                limit,
            ),
        ),
        Fix("Clip after backward() and before step()."),
    )


def _idle(run: Run) -> list[Event]:
    """Clips that stand after a step (or at the start) and before a backward (or the end)."""
    found: list[Event] = []
    waiting: list[Event] = []
    last = "step"
    for event in run.events:
        if event.kind in ("step", "manual_step", "backward"):
            if event.kind == "backward":
                found += waiting
            waiting = []
            last = "backward" if event.kind == "backward" else "step"
        elif event.kind == "clip" and last == "step":
            waiting.append(event)
    return found + waiting

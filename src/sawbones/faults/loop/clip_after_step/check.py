"""Clipping after the step, or before backward, so that it has no effect

## What it sees
Where the clip stands between backward and step. A clip with no backward pass since the last step,
followed by a backward pass rather than by another step, touches gradients that are used up or not
there yet. Fires when at least 80 % of the clips are like that; proven when a step really used
gradients longer than the limit. The earliest is step 2. Clipping by hand is told from operators
that scale, in place and after the step, tensors with the very norms that the step's gradients had.

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
Two optimizers after one backward: the clip before the second step is followed by that step. A clip
with an infinite limit that logs the norm, and a limit that no gradient ever reached, change nothing
either way.

## References
A variant of the misplaced zero_grad; found in forum threads that begin with "clipping does not
help".
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sawbones.schema import DeepStep, Event, Evidence, Finding, Fix, Op, Run, Site, Value
from sawbones.stats.protocol import measured, sites_of

NEEDS = ("backward", "steps")
EXPLAINS = ("loop.exploding-gradients", "loop.loss-spike")
EXPERIMENT = None
SHARE = 0.8
IN_PLACE = ("mul_", "div_", "clamp_", "clip_", "clamp_max_", "copy_", "__imul__", "__itruediv__")


def check(run: Run) -> Iterator[Finding]:
    clips = run.of_kind("clip")
    if not clips:
        yield from _by_hand(run)
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
                (
                    f"no backward pass between the last step and the clip, at {len(idle)} of "
                    f"{len(clips)} clips"
                ),
                "events",
                tuple(c.step for c in idle[:5]),
                len(idle) / len(clips),
                0.0,
            ),
            Evidence(
                (
                    f"the gradient norm at the step exceeds the limit of {limit:g} at "
                    f"{len(exceeded)} of {len(norms)} steps"
                ),
                "steps",
                tuple(exceeded[:5]),
                float(np.nanmax(norms)) if np.any(np.isfinite(norms)) else None,
                limit,
            ),
        ),
        Fix("Clip after backward() and before step()."),
    )


def _by_hand(run: Run) -> Iterator[Finding]:
    """Gradients that a step has used, scaled down or cut in place after it and cleared before the
    next backward pass.
    """
    found = [
        (deep.step, op)
        for deep in run.deep
        if deep.step and (op := _late_scaling(run, deep)) is not None
    ]
    looked = [deep for deep in run.deep if deep.step]
    kept = sum(bool(e.data.get("uncleared")) for e in run.of_kind("step"))
    if len(found) < 2 or len(found) < SHARE * len(looked) or kept > 2:
        return
    shrunk = [
        (step, op) for step, op in found if _spread(op.outputs[0]) < 0.999 * _spread(op.inputs[0])
    ]
    step, op = (shrunk or found)[0]
    yield Finding(
        "loop.clip-after-step",
        "proven" if shrunk else "suspected",
        0.94 if shrunk else 0.4,
        "Clipping by hand has no effect: it comes when the step has already used the gradients",
        tuple(dict.fromkeys(s for s in (*_steps_near(run, op), op.site) if s is not None))[:3],
        (
            Evidence(
                f"the gradients of the step before are scaled in place ({op.name}) after it, at {len(found)} of {len(looked)} "
                f"steps looked at, by {_spread(op.outputs[0]) / max(_spread(op.inputs[0]), 1e-30):.3g} at step {step}",
                "ops",
                tuple(s for s, _ in found[:5]),
                float(len(found)),
                0.0,
            ),
        ),
        Fix("Clip after backward() and before step()."),
    )


def _steps_near(run: Run, op: Op) -> list[Site | None]:
    """The clip may live in a function of its own; the step beside its call is where the order is
    wrong.
    """
    steps = [e.site for e in run.of_kind("step") if e.site is not None][:1]
    return [s for s in steps if op.site is None or s.function != op.site.function]


def _late_scaling(run: Run, deep: DeepStep) -> Op | None:
    norms = measured(run, "grad_l2", deep.step - 1)
    by_shape: dict[tuple[int, ...], list[float]] = {}
    for tensor, norm in zip(run.tensors, norms, strict=False):
        if tensor.optimizer >= 0 and norm > 0:
            by_shape.setdefault(tensor.shape, []).append(float(norm))
    hits: list[Op] = []
    for op in deep.ops:
        if op.module or any(v.requires_grad for v in op.inputs):
            break  # the forward pass has begun
        if op.name in IN_PLACE and op.inputs and op.outputs:
            size = _spread(op.inputs[0])
            if any(abs(size - n) <= 0.02 * n for n in by_shape.get(op.inputs[0].shape, ())):
                hits.append(op)
    num_held = sum(map(len, by_shape.values()))
    if len(hits) < 2 or len(hits) < 0.4 * num_held:
        return None
    return max(hits, key=lambda o: o.inputs[0].std or 0.0)


def _spread(value: Value) -> float:
    """L2 norm, from the moments."""
    number = math.prod(value.shape)
    return math.sqrt(number * ((value.mean or 0.0) ** 2 + (value.std or 0.0) ** 2))


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

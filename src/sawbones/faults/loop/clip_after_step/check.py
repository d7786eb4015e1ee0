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

from sawbones.evidence import NothingToJudge, context, counted, exact, finding
from sawbones.evidence.limits import TINY
from sawbones.evidence.limits import loop as limits
from sawbones.schema import DeepStep, Event, Finding, Fix, Op, Run, Site, Value
from sawbones.stats.protocol import measured
from sawbones.stats.relative import relative_difference
from sawbones.trace.locate import locate

NEEDS = ("backward", "steps")
EXPLAINS = ("loop.exploding-gradients", "loop.loss-spike")
EXPERIMENT = None
MOST_UNCLEARED = 2  # steps: later ones would use what was clipped before, and it had an effect
IN_PLACE = ("mul_", "div_", "clamp_", "clamp_max_", "copy_")
FIX = Fix("Clip after backward() and before step().")


def check(run: Run) -> Iterator[Finding]:
    clips = run.of_kind("clip")
    if len(clips) > 1:
        yield from _by_call(run, clips)
        return
    late = [(d.step, op) for d in run.deep if d.step and (op := _late_scaling(run, d)) is not None]
    if clips or not late:
        raise NothingToJudge("gradients are not clipped, or once at most")
    yield from _by_hand(run, late)


def _by_call(run: Run, clips: tuple[Event, ...]) -> Iterator[Finding]:
    idle = _idle(run)
    if not limits.STEPS_OUT_OF_ORDER.reached_by(len(idle) / len(clips)):
        return
    asked = [float(c.data["max_norm"]) for c in idle if c.data.get("max_norm") is not None]
    limit = float(np.median(asked)) if asked else math.inf
    if not math.isfinite(limit):
        return
    norms = run.steps["grad_norm"]
    exceeded = [
        int(step)
        for step, norm in zip(run.steps["step"], norms, strict=True)
        if limits.CLIP_EXCEEDED.passed_by(norm / max(limit, TINY))
    ]
    matters = bool(exceeded) or idle[0].data.get("fn") != "clip_grad_norm_"
    yield finding(
        "Clipping has no effect: it comes when the step has already used the gradients"
        if idle[0].data.get("norm")
        else "Clipping has no effect: it comes before backward, when there are no gradients",
        locate(idle[0]),
        (
            exact(
                f"no backward pass between the last step and the clip, at {len(idle)} of "
                f"{len(clips)} clips",
                len(idle),
                signal="events",
                steps=[c.step for c in idle[:5]],
            ),
            context(
                f"the gradient norm at the step exceeds the limit of {limit:g} at "
                f"{len(exceeded)} of {len(norms)} steps",
                signal="steps",
                steps=exceeded[:5],
                value=float(np.nanmax(norms)) if np.any(np.isfinite(norms)) else None,
                expected=limit,
            ),
        ),
        FIX,
        at_most="proven" if matters else "suspected",
    )


def _by_hand(run: Run, late: list[tuple[int, Op]]) -> Iterator[Finding]:
    """Gradients that a step has used, scaled down or cut in place after it and cleared before the
    next backward pass.
    """
    looked = [deep for deep in run.deep if deep.step]
    uncleared = [e for e in run.of_kind("step") if e.data.get("uncleared")]
    enough = limits.STEPS_OUT_OF_ORDER.reached_by(len(late) / len(looked))
    if len(late) < 2 or not enough or len(uncleared) > MOST_UNCLEARED:
        return
    shrunk = [(step, op) for step, op in late if limits.CLIP_SHRINKS.undercut_by(_factor(op))]
    step, op = (shrunk or late)[0]
    yield finding(
        "Clipping by hand has no effect: it comes when the step has already used the gradients",
        locate(*_steps_near(run, op), op)[:3],
        (
            counted(
                f"the gradients of the step before are scaled in place ({op.name}) after "
                f"it, at {len(late)} of {len(looked)} "
                f"steps looked at, by {_factor(op):.3g} at step {step}",
                len(late),
                len(looked),
                limits.STEPS_OUT_OF_ORDER,
                signal="ops",
                steps=[s for s, _ in late[:5]],
            ),
        ),
        FIX,
        at_most="likely" if shrunk else "suspected",
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
            size = _norm(op.inputs[0])
            known = by_shape.get(op.inputs[0].shape, ())
            if any(limits.CLIPPED_GRADIENT.kept_by(relative_difference(size, n)) for n in known):
                hits.append(op)
    num_held = max(1, sum(map(len, by_shape.values())))
    if len(hits) < 2 or not limits.CLIPPED_TENSORS.reached_by(len(hits) / num_held):
        return None
    return max(hits, key=lambda o: o.inputs[0].std or 0)


def _factor(op: Op) -> float:
    return _norm(op.outputs[0]) / max(_norm(op.inputs[0]), TINY)


def _norm(value: Value) -> float:
    """L2 norm, from the moments."""
    number = math.prod(value.shape)
    return math.sqrt(number * ((value.mean or 0) ** 2 + (value.std or 0) ** 2))


def _idle(run: Run) -> list[Event]:
    """Clips that stand after a step (or at the start) and before a backward (or the end)."""
    found: list[Event] = []
    waiting: list[Event] = []
    stepped = True
    for event in run.of_kind("step", "manual_step", "backward", "clip"):
        if event.kind == "clip":
            waiting += [event] if stepped else []
            continue
        stepped = event.kind != "backward"
        if not stepped:
            found += waiting
        waiting = []
    return found + waiting

"""Gradients that are never cleared, so that every step uses the sum of all gradients so far

## What it sees
At each optimizer step, how many of its gradients were not cleared since the same optimizer stepped
last. A gradient counts as cleared when, at some backward pass in between, it was None, another
tensor, or had been written to (zeroed). Fires when at least half of an optimizer's gradients were
uncleared at 90 % of its steps; the earliest is its second step. Updates written by hand (parameters
that change between two backward passes without an optimizer) are judged alike: a gradient counts as
uncleared when the next backward pass finds it as the last one left it, and not zero.

## Why it matters
The update follows a running sum of gradients: the effective step grows with time, old batches keep
pulling, and the run oscillates or diverges although every single gradient is right.

## Looks like
Loss falls at first, then swings with growing amplitude; the gradient norm grows like a line.

## Example
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

## Use instead
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

## Confirm it
The script runs again with gradients cleared after every optimizer step. Confirmed when the gradient
norm stays lower than in the run without, or the loss ends lower.

## False alarms
Gradient accumulation clears after the step, not before every backward, and stays silent. LBFGS
closures clear inside the step. A parameter that two optimizers share is judged by its last
clearing. zero_grad through the model, through the optimizer, by hand (`p.grad = None`,
`p.grad.zero_()`) all change identity or version and count as cleared. Of an update written by hand
only parameters that it changed count, so that a network that waits while another one is updated, or
whose gradients are by-products of an attack on its input, is no part of it.

## References
The most common mistake named in PyTorch's own forum and tutorials; missing zero_grad is fault 1 of
several studies of deep learning bugs.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, context, counted, finding
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Event, Finding, Fix, Optimizer, Run, Site
from sawbones.stats.series import growth_exponent

NEEDS = ("steps", "events", "tensors")
EXPLAINS = (
    "optimizer.lr-too-high",
    "loop.exploding-gradients",
    "loop.loss-spike",
    "loop.accumulation-unscaled",
    "loop.memory-leak",
    "loss.unstable-log",
    "data.labels-misaligned",
)
EXPERIMENT = "zero_grad_added"
BY_HAND = -1  # in the place of an optimizer's number


def check(run: Run) -> Iterator[Finding]:
    judged = [(optimizer, _steps(run, optimizer)) for optimizer in run.optimizers]
    judged = [(optimizer, steps) for optimizer, steps in judged if len(steps) >= 2]
    by_hand = [e for e in run.of_kind("manual_step") if "num_uncleared" in e.data][1:]
    if not judged and len(by_hand) < 2:
        raise NothingToJudge("no optimizer took a second step after its first")
    for optimizer, steps in judged:
        yield from _of(run, optimizer, steps)
    if not judged:
        yield from _by_hand(run, by_hand)


def _steps(run: Run, optimizer: Optimizer) -> list[Event]:
    """Every step but the first, before which there was nothing to clear."""
    mine = [e for e in run.of_kind("step") if e.data.get("optimizer") == optimizer.index]
    return [e for e in mine if not e.data.get("skipped")][1:]


def _of(run: Run, optimizer: Optimizer, steps: list[Event]) -> Iterator[Finding]:
    held = sum(t.requires_grad and t.optimizer == optimizer.index for t in run.tensors)
    if not held:
        return
    uncleared = [
        e
        for e in steps
        if limits.UNCLEARED_PARAMETERS.reached_by((e.data.get("uncleared") or 0) / held)
    ]
    yield from _summed_up(
        run,
        optimizer.index,
        steps,
        uncleared,
        Fix("Call zero_grad() of the optimizer once per step, before backward()."),
    )


def _by_hand(run: Run, steps: list[Event]) -> Iterator[Finding]:
    uncleared = [
        e
        for e in steps
        if limits.UNCLEARED_PARAMETERS.reached_by(e.data["num_uncleared"] / e.data["num_changed"])
    ]
    yield from _summed_up(
        run,
        BY_HAND,
        steps,
        uncleared,
        Fix(
            "Clear the gradient of every parameter once per update, before backward(): "
            "p.grad = None, or p.grad.zero_()."
        ),
    )


def _summed_up(
    run: Run, optimizer: int, steps: list[Event], uncleared: list[Event], fix: Fix
) -> Iterator[Finding]:
    if not limits.UNCLEARED_STEPS.reached_by(len(uncleared) / len(steps)):
        return
    site = _backward_before(run, uncleared[0]) or uncleared[0].site
    norms = run.steps["grad_norm"][run.steps["optimizer"] == optimizer]
    yield finding(
        "Gradients are never cleared: every step uses the sum of all gradients so far",
        (site,) if site else (),
        (
            counted(
                f"gradients of the step before were still there at {len(uncleared)} of "
                f"{len(steps)} steps",
                len(uncleared),
                len(steps),
                limits.UNCLEARED_STEPS,
                signal="events",
                steps=[e.step for e in uncleared[:5]],
            ),
            context(
                f"gradient norm grows from {norms[0]:.3g} to {norms[-1]:.3g}, like "
                f"step^{growth_exponent(norms):.2f}",
                signal="steps",
                steps=(0, len(norms) - 1),
                value=float(norms[-1]),
                expected=float(norms[0]),
            ),
        ),
        fix,
    )


def _backward_before(run: Run, step: Event) -> Site | None:
    before = [e.site for e in run.of_kind("backward") if e.seq < step.seq]
    return before[-1] if before else None

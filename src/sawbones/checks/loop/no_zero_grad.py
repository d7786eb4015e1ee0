"""Gradients that are never cleared, so that every step uses the sum of all gradients so far

## What it sees
Before each backward pass that begins a new step, the gradients of the parameters. A gradient is carried over when it is the
very tensor that the last optimizer step used and nothing has written to it since (same identity, same version). Fires when
gradients were carried over into at least 90 % of the steps; the earliest is step 2. Accumulation is not counted: only the first
backward after an optimizer step is looked at.

## Why it matters
The update follows a running sum of gradients: the effective step grows with time, old batches keep pulling, and the run
oscillates or diverges although every single gradient is right.

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
The script runs again with gradients cleared after every optimizer step. Confirmed when the gradient norm stays lower than in
the run without, or the loss ends lower.

## False alarms
Gradient accumulation clears after the step, not before every backward, and stays silent. LBFGS closures clear inside the step.
A parameter that two optimizers share is judged by its last clearing. zero_grad through the model, through the optimizer, by
hand (`p.grad = None`, `p.grad.zero_()`) all change identity or version and count as cleared.

## References
The most common mistake named in PyTorch's own forum and tutorials; missing zero_grad is fault 1 of several studies of deep
learning bugs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sawbones.schema import Evidence, Finding, Fix, Run
from sawbones.stats.series import growth_exponent

NEEDS = ("backward", "steps")
EXPLAINS = (
    "optimizer.lr-too-high", "loop.exploding-gradients", "loop.loss-spike", "loop.accumulation-unscaled", "loop.memory-leak",
    "loss.unstable-log", "data.labels-misaligned",
)  # fmt: skip
EXPERIMENT = "zero_grad_added"
SHARE = 0.9


def check(run: Run) -> Iterator[Finding]:
    begins = [e for e in run.of_kind("backward") if e.microstep == 0 and e.step > 0]
    if len(begins) < 2:
        return
    carried = [e for e in begins if (e.data.get("carried") or 0) > 0]
    if len(carried) < SHARE * len(begins):
        return
    trainable = sum(t.requires_grad and t.optimizer >= 0 for t in run.tensors) or 1
    share = float(np.median([e.data["carried"] for e in carried])) / trainable
    if share < 0.5:  # a few gradients that nobody clears are a frozen part or a second optimizer's business
        return
    norms = run.steps["grad_norm"]
    site = carried[0].site
    yield Finding(
        "loop.no-zero-grad",
        "likely",
        0.95,
        "Gradients are never cleared: every step uses the sum of all gradients so far",
        (site,) if site else (),
        (
            Evidence(
                f"gradients of the step before were still there at {len(carried)} of {len(begins)} backward passes",
                "backward",
                tuple(e.step for e in carried[:5]),
                len(carried) / len(begins),
                0.0,
            ),
            Evidence(
                f"gradient norm grows from {norms[0]:.3g} to {norms[-1]:.3g}, like step^{growth_exponent(norms):.2f}",
                "steps",
                (0, len(norms) - 1),
                float(norms[-1]),
                float(norms[0]),
            ),
        ),
        Fix(
            "Call optimizer.zero_grad() once per optimizer step, before backward().",
            insert_before="optimizer.zero_grad()",
        ),
    )

"""Accumulated loss divided twice by the number of micro-batches

## What it sees
Steps that several backward passes from one line lead to, each on a new batch, and the value that
each pass starts from: it is the mean loss of its micro-batch over the square of the number of
passes. The accumulated gradient is then one N-th of that of the same data in one batch. From step
1; at least 80 % of the steps, and 3 passes a step at the least.

## Why it matters
SGD learns with one N-th of the learning rate that was set, and clipping, weight decay and noise of
fixed size weigh N times as much.

## Looks like
Slower learning the more micro-batches there are, although the learning rate is that of the large
batch.

## Example
    accelerator = Accelerator(gradient_accumulation_steps=4)
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = criterion(model(x), y) / 4
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()

## Use instead
    accelerator = Accelerator(gradient_accumulation_steps=4)
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = criterion(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()

## Confirm it
Print what the backward pass starts from beside the loss: their ratio is one over the square of the
number of passes.

## False alarms
A loss that is divided once, or by anything else than exactly the number of passes, stays silent; so
do two passes a step, where a weight of one half would look the same, and losses with
reduction="sum".

## References
The guide to gradient accumulation of Accelerate: `backward` inside of `accumulate` divides by the
number of steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Finding, Fix, Run
from sawbones.stats.accumulating import (
    NOT_ACCUMULATED,
    accumulating,
    root_over_loss,
    where_divided,
)

NEEDS = ("backward", "steps")
EXPLAINS = ("optimizer.lr-too-low",)
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    several = accumulating(run)
    if not several:
        raise NothingToJudge(NOT_ACCUMULATED)
    count = Counter(len(t.backwards) for t in several).most_common(1)[0][0]
    if not limits.MICROBATCHES_TO_TELL.reached_by(count):
        raise NothingToJudge(f"{count} micro-batches a step: a weight of one half looks the same")
    usual = [t for t in several if len(t.backwards) == count]
    ratios = [r for t in usual if (r := root_over_loss(t)) is not None]
    if not ratios:
        raise NothingToJudge("no backward pass could be laid beside the loss of its micro-batch")
    enough = limits.STEPS_OUT_OF_ORDER.reached_by(len(ratios) / len(usual))
    if not enough or not all(
        limits.UNDIVIDED_LOSS.undercut_by(abs(r * count**2 - 1)) for r in ratios
    ):
        return
    turn = usual[0]
    yield finding(
        f"The loss is divided by the {count} micro-batches twice: the gradient is one "
        f"{count}th of that of one large batch",
        where_divided(turn),
        (
            exact(
                f"each of {count} backward passes per step starts from "
                f"{turn.backwards[0].data['value']:.4g}: its mean loss over {count} times {count}",
                ratios[0],
                expected=1 / count,
                signal="backward",
                steps=[t.step for t in usual[:5]],
            ),
        ),
        Fix(
            f"Divide the loss by the number of micro-batches ({count}) once: leave it to the "
            "framework or helper that runs the backward pass, or do it by hand alone."
        ),
        at_most="likely",  # the gradients may be multiplied afterwards
    )

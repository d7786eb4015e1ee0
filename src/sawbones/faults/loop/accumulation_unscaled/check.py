"""Accumulated loss not divided by the number of micro-batches

## What it sees
Steps that several backward passes from one line lead to, each on a new batch, and the value that
each pass starts from: it equals the mean loss of its micro-batch, undivided (of a loss written by
hand, the mean itself). The accumulated gradient is then N times that of the same data in one batch.
From step 1; at least 80 % of the steps.

## Why it matters
The effective learning rate of SGD is N times the one that was set, and clipping acts on gradients N
times too long.

## Looks like
Accumulation "does not match" the large batch; SGD diverges when the number of micro-batches goes
up.

## Example
    for i, (x, y) in enumerate(loader):
        criterion(model(x), y).backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()

## Use instead
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / 4).backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()

## Confirm it
The script runs again and the gradient norm is taken right after the last backward pass and again at
the step. Confirmed when both are the same: nothing in between divides. Refuted when the gradients
were divided by hand.

## False alarms
Losses with reduction="sum", several losses of one batch, one pass per task with different losses,
and closures stay silent.

## References
The same error in Transformers' Trainer (fixed in 2024) made accumulated token losses wrong for
variable lengths.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Finding, Fix, Run
from sawbones.stats.accumulating import (
    NOT_ACCUMULATED,
    accumulating,
    root_over_loss,
    where_divided,
)
from sawbones.stats.protocol import Turn, same_place
from sawbones.stats.relative import relative_difference

NEEDS = ("backward", "steps")
EXPLAINS = ("optimizer.lr-too-high",)
EXPERIMENT = "gradient_until_step"
MIN_MEANS = 3  # deep steps: there are only a few


def check(run: Run) -> Iterator[Finding]:
    several = accumulating(run)
    if not several:
        raise NothingToJudge(NOT_ACCUMULATED)
    ratios = [r for t in several if (r := root_over_loss(t)) is not None] or _by_trace(run, several)
    if not ratios:
        raise NothingToJudge("no backward pass could be laid beside the loss of its micro-batch")
    enough = (
        limits.STEPS_OUT_OF_ORDER.reached_by(len(ratios) / len(several))
        if several[0].of("loss")
        else len(ratios) >= MIN_MEANS
    )
    if not enough or not all(limits.UNDIVIDED_LOSS.undercut_by(abs(r - 1)) for r in ratios):
        return
    turn = several[0]
    count = int(np.median([len(t.backwards) for t in several]))
    yield finding(
        f"{count} micro-batches are summed, not averaged: the gradient is {count} times "
        "that of one large batch",
        where_divided(turn),
        (
            exact(
                f"each of {count} backward passes per step starts from its whole mean "
                f"loss ({turn.backwards[0].data['value']:.4g})",
                1,
                expected=1 / count,
                signal="backward",
                steps=[t.step for t in several[:5]],
            ),
        ),
        Fix(f"Divide the loss by the number of micro-batches ({count}) before backward()."),
        at_most="likely",  # the gradients may be divided afterwards
    )


def _by_trace(run: Run, several: list[Turn]) -> list[float]:
    """A loss written by hand: 1 for every deep step at which the mean itself is what a backward
    pass starts from.
    """
    by_step = {t.step: t for t in several if not t.of("loss") and same_place(t.backwards)}
    found: list[float] = []
    for deep in run.deep:
        turn = by_step.get(deep.step)
        if turn is None:
            continue
        values = [b.data.get("value") for b in turn.backwards]
        known = [v for v in values if isinstance(v, float) and v]
        forwards = [e for e in turn.of("forward") if e.phase == "train"]
        if len(set(known)) < 2 or len(forwards) < len(known):
            continue
        roots = [
            op
            for op in deep.ops
            if op.outputs
            and op.outputs[0].shape == ()
            and op.outputs[0].requires_grad
            and _is_one_of(op.outputs[0].mean or 0, known)
        ]
        if roots:
            found.append(int(roots[-1].name == "mean"))
    return found


def _is_one_of(value: float, known: list[float]) -> bool:
    return any(limits.SAME_SCALAR.kept_by(relative_difference(value, v)) for v in known)

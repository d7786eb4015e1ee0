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

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.protocol import Turn, same_place, sites_of, turns

NEEDS = ("backward", "steps")
EXPLAINS = ("optimizer.lr-too-high",)
EXPERIMENT = "gradient_until_step"
SHARE = 0.8
MEANS = 3  # deep steps


def check(run: Run) -> Iterator[Finding]:
    whole = [t for t in turns(run) if t.backwards and not t.closure and t.taken.kind == "step"]
    several = [t for t in whole if len(t.backwards) > 1]
    if len(several) < 2 or len(several) < 0.5 * len(whole):
        return
    several = [
        t for t in several if _finite(t)
    ]  # the sum of gradients may itself have thrown the run: NaN says nothing here
    if len(several) < 2:
        return
    ratios = [r for t in several if (r := _undivided(t)) is not None] or _by_trace(run, several)
    needed = SHARE * len(several) if len(several[0].of("loss")) else MEANS
    if len(ratios) < needed or not all(abs(r - 1) < 1e-3 for r in ratios):
        return
    turn = several[0]
    count = int(np.median([len(t.backwards) for t in several]))
    yield Finding(
        "loop.accumulation-unscaled",
        "likely",
        0.88,
        (
            f"{count} micro-batches are summed, not averaged: the gradient is {count} times "
            "that of one large batch"
        ),
        _where(turn),
        (
            Evidence(
                (
                    f"each of {count} backward passes per step starts from its whole mean "
                    f"loss ({turn.backwards[0].data['value']:.4g})"
                ),
                "backward",
                tuple(t.step for t in several[:5]),
                1.0,
                1.0 / count,
            ),
        ),
        Fix(f"Divide the loss by the number of micro-batches ({count}) before backward()."),
    )


def _finite(turn: Turn) -> bool:
    return all(
        np.isfinite(v) for b in turn.backwards if isinstance(v := b.data.get("value"), float)
    )


def _where(turn: Turn) -> tuple[Site, ...]:
    """The backward pass; or the loss, where one line of the user's leads to both the pass and the
    step: a library's loop.
    """
    backward, loss = turn.backwards[-1], next(iter(turn.of("loss")), None)
    own = (
        backward.site is None
        or turn.taken.site is None
        or backward.site.line != turn.taken.site.line
    )
    return sites_of(backward, loss) if own else sites_of(loss, backward)


def _by_trace(run: Run, several: list[Turn]) -> list[float]:
    """A loss written by hand: 1 for every deep step at which the mean itself is what a backward
    pass starts from.
    """
    by_step = {t.step: t for t in several if not t.of("loss") and same_place(t.backwards)}
    found = []
    for deep in run.deep:
        turn = by_step.get(deep.step)
        values = [b.data.get("value") for b in turn.backwards] if turn is not None else []
        known = [v for v in values if isinstance(v, float) and v]
        if (
            turn is None
            or len(set(known)) < 2
            or len([e for e in turn.of("forward") if e.phase == "train"]) < len(known)
        ):
            continue
        ends = [
            op
            for op in deep.ops
            if op.outputs and op.outputs[0].shape == () and op.outputs[0].requires_grad
        ]
        roots = [
            op
            for op in ends
            if any(abs((op.outputs[0].mean or 0.0) - v) <= 1e-6 * abs(v) for v in known)
        ]
        if not roots:
            continue
        found.append(1.0 if roots[-1].name == "mean" else 0.0)
    return found


def _undivided(turn: Turn) -> float | None:
    """Root over loss for the passes of one step, None when these are not micro-batches of one
    loss.
    """
    backwards = turn.backwards
    losses = [e for e in turn.of("loss") if e.data.get("grad") and e.phase == "train"]
    if not same_place(backwards) or len(losses) != len(backwards) or not same_place(losses):
        return None
    if (
        any(e.data.get("reduction") != "mean" for e in losses)
        or len({str(e.data.get("input_shape", [0])[1:]) for e in losses}) > 1
    ):
        return None
    forwards = [e for e in turn.of("forward") if e.phase == "train"]
    if forwards and len(forwards) < len(
        backwards
    ):  # a model without modules has no forward events at all
        return None
    pairs = [
        (b.data.get("value"), e.data.get("value")) for b, e in zip(backwards, losses, strict=True)
    ]
    known = [(b, v) for b, v in pairs if isinstance(b, float) and isinstance(v, float) and v]
    if len(known) < 2 or len({v for _, v in known}) < 2:
        return None  # the same batch again: a penalty, a second order, an attack
    return float(np.median([b / v for b, v in known]))

"""Learning rate too high

## What it sees
Two things together. The steps are too large: the update is a tenth or more of the weights at some
early step, or more than a twentieth at the median step. And the run misbehaves: the loss turns
non-finite, ends above where it began (most batches, or all of them on average), shoots up by half and does not come down to where it should,
or makes no headway. When it is sudden, the last few updates before must have been large already.
The earliest is step 3. One large first update alone says nothing (a fresh Adam or RMSprop makes one
on small tensors).

## Why it matters
Every step overshoots: the loss jumps, diverges, or settles far above what a smaller step reaches.

## Looks like
A spike in the first steps, then a plateau near chance; or NaN after a few updates.

## Example
    optimizer = torch.optim.Adam(model.parameters(), lr=0.3)

## Use instead
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

## Confirm it
The script runs again with every learning rate times 0.1, from the same seed. Confirmed when the
loss then ends clearly lower and behaves; refuted when a tenth of the step is no better. Under plain
SGD a summed loss is healed in the same way: it stays likely where the loss was not seen to be a
mean.

## False alarms
Warm-up from 0, OneCycle peaks and large first updates of RMSprop do not make the loss misbehave.
Losses of GANs and of reinforcement learning wander with small updates. A run with noisy but falling
loss has made headway and stays silent.

## References
Bengio, Practical Recommendations for Gradient-Based Training (2012): the LR is the first thing to
try, by factors of ten.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from sawbones.evidence import NothingToJudge, compared, context, finding
from sawbones.evidence.limits import TINY
from sawbones.evidence.limits import optimizer as limits
from sawbones.evidence.limits.loop import ORDINARY_UPDATE
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.stats.divergence import (
    end_cost,
    first_trouble,
    least_mean_end,
    mean_end,
    recent_ratio,
)
from sawbones.stats.drawn_losses import drawn_losses
from sawbones.stats.protocol import update_ratios
from sawbones.stats.series import diverged, end_level, finite, first_nonfinite, start_level
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import numbers_equal

NEEDS = ("steps", "losses", "optimizers")
USES = ("source_numbers",)
EXPLAINS = (
    "loop.exploding-gradients",
    "loss.value-range",  # of values that are no numbers any more
    "loop.loss-spike",
    "loss.unstable-log",
    "model.unstable-norm",
    "evaluation.collapsed-prediction",
    "model.dead-units",
    "model.bad-init",
    "data.unnormalized-input",
    "loop.scaler-skipping",
    "evaluation.overfitting",
)
EXPERIMENT = "learning_rate_tenth"
MIN_LOSSES = 4  # a first one, and three that may leave it
WORDS = ("lr", "learning_rate", "rate", "eta", "alpha", "step_size")


def check(run: Run) -> Iterator[Finding]:
    losses = run.losses
    ratios = update_ratios(run)
    known = finite(ratios)
    if len(losses) < MIN_LOSSES or not len(known):
        raise NothingToJudge(f"fewer than {MIN_LOSSES} losses, or no update was measured")
    trouble = first_trouble(losses)
    recent = recent_ratio(ratios, trouble)
    if trouble is not None and ORDINARY_UPDATE.undercut_by(recent):
        return  # ordinary steps until the loss left: a gradient or a batch threw it
    if np.all(np.isfinite(losses)) and drawn_losses(run):
        raise NothingToJudge("the loss weighs what was drawn anew on every step: it has no level")
    peak, middle = float(np.max(known)), float(np.median(known))
    often = ORDINARY_UPDATE.reached_by(middle)
    if not often and not limits.LARGEST_UPDATE.suspected_by(peak):
        return
    how = _misbehaves(losses)
    if how is None:
        return
    text, damning = how
    # A fifth of the weights at every step, and the loss shoots up, is enough without more damage.
    thrown = trouble is not None and limits.UPDATE_BEFORE_TROUBLE.reached_by(recent)
    rates = finite(run.steps["lr"])
    rate = float(np.max(rates)) if len(rates) else math.nan
    once = limits.LARGEST_UPDATE.reached_by(peak) or not often
    yield finding(
        f"Learning rate {rate:g} is too high: {text}",
        _where(run, rate),
        (
            compared(
                f"the update is {peak:.2g} of the weights at its largest, {middle:.2g} at "
                "the median step (healthy: about 0.001)",
                peak if once else middle,
                limits.LARGEST_UPDATE if once else ORDINARY_UPDATE,
                expected=limits.HEALTHY_UPDATE.value,
                signal="steps",
                steps=(int(np.nanargmax(ratios)),),
            ),
            context(
                f"loss {start_level(losses[:6]):.4g} at the start, {text}",
                signal="losses",
                steps=(0, len(losses) - 1),
                value=end if math.isfinite(end := end_cost(losses)) else None,
            ),
        ),
        Fix(f"Lower the learning rate, at first by a factor of ten (to about {rate / 10:g})."),
        at_most="likely" if damning or thrown else "suspected",
    )


def _misbehaves(losses: npt.NDArray[np.float64]) -> tuple[str, bool] | None:
    """(in words, whether that alone is damning), None for a run that goes its way."""
    bad = first_nonfinite(losses)
    if bad is not None:
        return f"the loss is not finite from step {bad}", True
    first, peak, end = float(losses[0]), float(np.max(losses)), end_level(losses)
    size = max(abs(first), TINY)
    if diverged(losses) or limits.LOSS_RISES.passed_by((end - first) / size):
        return f"the loss rises from {first:.4g} to {end:.4g}", True
    if limits.LOSS_RISES.passed_by((least_mean_end(losses) - first) / size):
        return f"the loss rises from {first:.4g} to {mean_end(losses):.4g} on average", True
    shot_up = (peak - first) / size
    down = (first - end) / size
    if limits.LOSS_SHOOTS_UP.suspected_by(shot_up) and limits.LOSS_COMES_DOWN.undercut_by(down):
        return (
            f"the loss shoots up to {peak:.4g} and ends at {end:.4g} after {first:.4g}",
            limits.LOSS_SHOOTS_UP.reached_by(shot_up),
        )
    if limits.HEADWAY.undercut_by(down):
        return f"the loss makes no headway: {first:.4g} at first, {end:.4g} at the end", False
    return None


def _where(run: Run, peak: float) -> tuple[Site, ...]:
    """Where the number stands, then where the optimizer or its schedule is made."""
    optimizer = max(
        run.optimizers, key=lambda o: max((float(g.get("lr") or 0) for g in o.groups), default=0)
    )
    rates = [
        v
        for o in run.optimizers
        for g in (o.defaults, *o.groups)
        for v in (g.get("lr"), g.get("initial_lr"), g.get("max_lr"))
    ]
    values = sorted({float(v) for v in rates if isinstance(v, (int, float))} | {peak}, reverse=True)
    schedules = [e.site for e in run.of_kind("schedule") if e.data.get("initial") and e.site]
    base = optimizer.defaults.get("lr")
    own = max(base, TINY) if isinstance(base, (int, float)) else math.inf
    raised = limits.RATE_RAISED.passed_by(peak / own)  # by a schedule, not by the optimizer
    if raised:
        values = [v for v in values if limits.RATE_RAISED.passed_by(v / own)]
    numbers = numbers_equal(run, *values, words=WORDS)
    scheduled = schedules[:1] if raised else ()
    return locate(*numbers[:1], *scheduled, optimizer, *numbers[1:3])

"""Learning rate too high

## What it sees
Two things together. The steps are too large: the update is a tenth or more of the weights at some
early step, or more than a twentieth at the median step. And the run misbehaves: the loss turns
non-finite, ends above where it began, shoots up by half and does not come down to where it should,
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
loss then ends clearly lower and behaves; refuted when a tenth of the step is no better.

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

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.divergence import first_trouble, recent_ratio
from sawbones.stats.protocol import numbers_equal_to, update_ratios
from sawbones.stats.series import diverged, end_level, finite, first_nonfinite, start_level

NEEDS = ("steps", "losses", "optimizers")
EXPLAINS = (
    "loop.exploding-gradients",
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
LARGE_ONCE, LARGE_OFTEN, HUGE = 0.1, 0.05, 0.2
WORDS = ("lr", "learning_rate", "rate", "eta", "alpha", "step_size")


def check(run: Run) -> Iterator[Finding]:
    losses = run.losses
    ratios = update_ratios(run)
    known = finite(ratios)
    if len(losses) < 4 or not len(known) or not run.optimizers:
        return
    trouble = first_trouble(losses)
    recent = recent_ratio(ratios, trouble)
    if trouble is not None and math.isfinite(recent) and recent < LARGE_OFTEN:
        return  # ordinary steps until the loss left: a gradient or a batch threw it
    peak, middle = float(np.max(known)), float(np.median(known))
    if peak < LARGE_ONCE and middle < LARGE_OFTEN:
        return
    how = _misbehaves(losses)
    if how is None:
        return
    text, clear = how
    sure = clear and (peak >= 2 * LARGE_ONCE or middle >= LARGE_OFTEN)
    sure |= (
        trouble is not None and recent >= HUGE
    )  # a fifth of the weights at every step, and the loss shoots up
    rate = float(np.nanmax(run.steps["lr"])) if np.any(np.isfinite(run.steps["lr"])) else math.nan
    yield Finding(
        "optimizer.lr-too-high",
        "likely" if sure else "suspected",
        0.85 if sure else 0.5,
        f"Learning rate {rate:g} is too high: {text}",
        _where(run),
        (
            Evidence(
                (
                    f"the update is {peak:.2g} of the weights at its largest, {middle:.2g} at "
                    "the median step (healthy: about 0.001)"
                ),
                "steps",
                (int(np.nanargmax(ratios)),),
                peak,
                1e-3,
            ),
            Evidence(
                f"loss {start_level(losses[:6]):.4g} at the start, {text}",
                "losses",
                (0, len(losses) - 1),
                _end(losses),
            ),
        ),
        Fix(f"Lower the learning rate, at first by a factor of ten (to about {rate / 10:g})."),
    )


def _end(losses: np.ndarray) -> float | None:
    end = end_level(losses)
    return end if math.isfinite(end) else None


def _misbehaves(losses: np.ndarray) -> tuple[str, bool] | None:
    """(in words, whether that alone is damning), None for a run that goes its way."""
    begin = float(finite(losses[:3]).mean()) if len(finite(losses[:3])) else math.nan
    first = float(finite(losses)[0]) if len(finite(losses)) else math.nan
    end, size = end_level(losses), max(abs(first), 1e-12)
    bad = first_nonfinite(losses)
    if bad is not None:
        return f"the loss is not finite from step {bad}", True
    if diverged(losses) or end > first + 0.5 * size:
        return f"the loss rises from {first:.4g} to {end:.4g}", True
    peak = float(np.max(finite(losses)))
    shot_up = peak > first + 0.4 * size
    if shot_up and end > first - 0.6 * size:
        return (
            f"the loss shoots up to {peak:.4g} and ends at {end:.4g} after {first:.4g}",
            peak > first + size,
        )
    if end > first - 0.15 * size and math.isfinite(begin):
        return f"the loss makes no headway: {first:.4g} at first, {end:.4g} at the end", False
    return None


def _where(run: Run) -> tuple[Site, ...]:
    """Where the number stands, then where the optimizer or its schedule is made."""
    stepping = sorted(
        run.optimizers, key=lambda o: -max((float(g.get("lr") or 0) for g in o.groups), default=0.0)
    )
    optimizer = stepping[0]
    rates = [
        v
        for o in run.optimizers
        for g in (o.defaults, *o.groups)
        for v in (g.get("lr"), g.get("initial_lr"), g.get("max_lr"))
    ]
    used = finite(run.steps["lr"])
    peak = float(np.max(used)) if len(used) else math.nan
    values = sorted({float(v) for v in rates if isinstance(v, (int, float))} | {peak}, reverse=True)
    schedules = [e for e in run.of_kind("schedule") if e.data.get("initial") and e.site is not None]
    base = optimizer.defaults.get("lr")
    raised = (
        isinstance(base, (int, float)) and math.isfinite(peak) and peak > 1.5 * base
    )  # by a schedule, not by the optimizer
    numbers = numbers_equal_to(
        run, [v for v in values if not raised or v > 1.5 * float(base or 0)], WORDS
    )
    built = (optimizer.site,) if optimizer.site else ()
    scheduled = tuple(e.site for e in schedules[:1] if e.site is not None) if raised else ()
    places: dict[tuple[str, int], Site] = {}
    for site in (*numbers[:1], *scheduled, *built, *numbers[1:3]):
        places.setdefault((site.file, site.line), site)
    return tuple(places.values())

"""Learning rate too low

## What it sees
Gradients that are there (norm above 1e-4, finite), updates under a hundred-thousandth of the
weights at the median step, and a loss that has moved by less than 3 %, or than its noise, over the
run. From step 10. Whether a larger rate does better is for the experiment; it also decides on
updates of up to a ten-thousandth when the loss has moved by less than 8 % in fifty steps.

## Why it matters
The run would need a thousand times as many steps.

## Looks like
The loss falls in a straight, nearly flat line; every metric stays at chance.

## Example
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-8)

## Use instead
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

## Confirm it
The script runs again with every learning rate raised until the update is 1/200 of the weights.
Confirmed when the loss then falls by 15 % of where it began and ends finite.

## False alarms
Fine-tuning with a small LR moves the weights by more than a hundred-thousandth per step. A run that
has converged has small gradients. A run that was cut short while its LR still rose is in its
warm-up, and not judged by that. A tiny update because the gradients are tiny is another fault
(vanishing, clipped while scaled, float16).

## References
Karpathy's rule of thumb: the update-to-weight ratio should be about 1e-3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from sawbones.evidence import NothingToJudge, compared, context, finding
from sawbones.evidence.limits import TINY
from sawbones.evidence.limits import optimizer as limits
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.stats.protocol import update_ratios
from sawbones.stats.series import end_level, finite, noise, start_level
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import numbers_equal

NEEDS = ("steps", "losses", "optimizers")
USES = ("source_numbers",)
EXPLAINS = ("evaluation.collapsed-prediction", "data.labels-misaligned")
EXPERIMENT = "learning_rate_raised"
MIN_STEPS = 10  # sooner nothing can be said of a slow run


def check(run: Run) -> Iterator[Finding]:
    ratios, norms, rates, losses = map(
        finite, (update_ratios(run), run.steps["grad_norm"], run.steps["lr"], run.losses)
    )
    if run.num_steps < MIN_STEPS or not all(map(len, (ratios, norms, rates, losses))):
        raise NothingToJudge(f"fewer than {MIN_STEPS} steps, or no update was measured")
    middle, norm, rate = (float(np.median(x)) for x in (ratios, norms, rates))
    begin, end = start_level(run.losses), end_level(run.losses)
    if (
        not middle > 0
        or not rate > 0
        or not math.isfinite(end)
        or not limits.SMALL_UPDATE.suspected_below(middle)
        or not limits.GRADIENT_SIZE.suspected_by(norm)
        or _warming_up(run, rates)
        or _learns(run, middle, (begin - end) / max(abs(begin), TINY))
    ):
        return
    # Under a two-hundred-thousandth nothing is learnt in any number of steps that one would wait
    # for.
    sure = (
        limits.GRADIENT_SIZE.reached_by(norm)
        and run.num_steps >= 2 * MIN_STEPS
        and not _beyond_noise(run)
    )
    yield finding(
        f"Learning rate {rate:g} is too low: a step moves the weights by {middle:.1g} of "
        "their size",
        _where(run, [rate, float(np.max(rates))]),
        (
            compared(
                f"the update is {middle:.2g} of the weights at the median step",
                middle,
                limits.SMALL_UPDATE,
                below=True,
                expected=limits.HEALTHY_UPDATE.value,
                signal="steps",
            ),
            context(
                f"gradient norm {norm:.3g}, loss {begin:.4g} at the start and {end:.4g} at the end",
                signal="losses",
                value=end,
            ),
        ),
        Fix("Raise the learning rate, at first by a factor of a hundred."),
        at_most="likely" if sure else "suspected",
        params={"factor": float(min(10**5, max(10, limits.HEALTHY_UPDATE.times(5) / middle)))},
    )


def _beyond_noise(run: Run) -> bool:
    """The loss has fallen by twice its step-to-step noise."""
    return start_level(run.losses) - end_level(run.losses) - 2 * noise(run.losses) > 0


def _learns(run: Run, update: float, moved: float) -> bool:
    """What speaks for a run: at updates that are small, a loss that has moved a little or a short
    run; at negligible ones, only a loss that falls out of its noise.
    """
    if limits.NEGLIGIBLE_UPDATE.reached_by(update):
        return limits.HARDLY_MOVED.passed_by(moved) or run.num_steps < 5 * MIN_STEPS
    return limits.NOT_MOVED.passed_by(moved) and _beyond_noise(run)


def _where(run: Run, rates: list[float]) -> tuple[Site, ...]:
    given = [float(g.get("lr") or 0) for o in run.optimizers for g in (o.defaults, *o.groups)]
    numbers = numbers_equal(
        run, *rates, *given, words=("lr", "learning_rate", "rate", "eta", "alpha")
    )
    return locate(*numbers[:1], run.optimizers[0])


def _warming_up(run: Run, rates: npt.NDArray[np.float64]) -> bool:
    """Cut short in the first steps of a longer warm-up: the learning rate that was meant has not
    been seen.
    """
    at_peak = bool(rates[-1] == np.max(rates))
    rise = rates[-1] / max(rates[len(rates) // 2], TINY)
    return run.ending.kind != "finished" and at_peak and limits.STILL_RISING.passed_by(rise)

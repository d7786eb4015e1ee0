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

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.protocol import numbers_equal_to, update_ratios
from sawbones.stats.series import end_level, finite, noise, start_level

NEEDS = ("steps", "losses", "optimizers")
EXPLAINS = ("evaluation.collapsed-prediction", "data.labels-misaligned")
EXPERIMENT = "learning_rate_raised"
DOUBTFUL, SMALL, FAR_TOO_SMALL, STEPS = 1e-4, 1e-5, 5e-6, 10
HARDLY = 0.08  # of the loss, in fifty steps or more


def check(run: Run) -> Iterator[Finding]:
    ratios, norms, rates = (
        finite(update_ratios(run)),
        finite(run.steps["grad_norm"]),
        finite(run.steps["lr"]),
    )
    if (
        run.num_steps < STEPS
        or not len(ratios)
        or not len(norms)
        or not len(rates)
        or not len(finite(run.losses))
    ):
        return
    middle, norm, rate = float(np.median(ratios)), float(np.median(norms)), float(np.median(rates))
    begin, end = start_level(run.losses), end_level(run.losses)
    moved = (begin - end) / max(abs(begin), 1e-12)
    if (
        not 0 < middle < DOUBTFUL
        or norm < 1e-4
        or rate <= 0
        or not math.isfinite(moved)
        or _warming_up(run, rates)
    ):
        return
    if middle >= SMALL and (moved > HARDLY or run.num_steps < 5 * STEPS):
        return
    if middle < SMALL and moved > 0.03 and begin - end > 2 * noise(run.losses):
        return
    # Under a two-hundred-thousandth nothing is learnt in any number of steps that one would wait
    # for.
    sure = (
        middle < FAR_TOO_SMALL
        and norm > 0.02
        and run.num_steps >= 2 * STEPS
        and begin - end < 2 * noise(run.losses)
    )
    optimizer = run.optimizers[0]
    values = [
        rate,
        float(np.max(rates)),
        *(float(g.get("lr") or 0) for o in run.optimizers for g in (o.defaults, *o.groups)),
    ]
    numbers = numbers_equal_to(run, values, ("lr", "learning_rate", "rate", "eta", "alpha"))
    places: dict[tuple[str, int], Site] = {}
    for site in (*numbers[:1], *((optimizer.site,) if optimizer.site else ())):
        places.setdefault((site.file, site.line), site)
    yield Finding(
        "optimizer.lr-too-low",
        "likely" if sure else "suspected",
        0.86 if sure else 0.6,
        (
            f"Learning rate {rate:g} is too low: a step moves the weights by {middle:.1g} of "
            "their size"
        ),
        tuple(places.values()),
        (
            Evidence(
                f"the update is {middle:.2g} of the weights at the median step",
                "steps",
                (),
                middle,
                1e-3,
            ),
            Evidence(
                f"gradient norm {norm:.3g}, loss {begin:.4g} at the start and {end:.4g} at the end",
                "losses",
                (),
                end,
            ),
        ),
        Fix("Raise the learning rate, at first by a factor of a hundred."),
        params={"factor": float(min(1e5, max(10.0, 5e-3 / middle)))},
    )


def _warming_up(run: Run, rates: np.ndarray) -> bool:
    """Cut short in the first steps of a longer warm-up: the learning rate that was meant has not
    been seen.
    """
    return run.ending.kind != "finished" and bool(
        rates[-1] >= np.max(rates) and rates[-1] > 1.3 * rates[len(rates) // 2]
    )

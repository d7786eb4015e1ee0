"""Betas, eps or momentum that do not fit the run

## What it sees
The settings of torch's own optimizers that somebody chose, against what the run gave them to work
with. An eps that is ten times the root mean square of the gradients or more, at the median step,
while the weights hardly move: the update is divided by eps, not by the size of the gradient.
Momentum or beta1 whose memory, 1 / (1 - momentum) steps, is five times the whole run. Betas for
which Adam is known not to settle: the square of beta1 above the root of beta2. The earliest is
step 10.

## Why it matters
The step is far from the gradient's scale, or follows gradients of long ago: the loss stands still,
or swings.

## Looks like
Training that works with the default optimizer and not with a recipe that was copied from elsewhere;
a larger learning rate seems to help.

## Example
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=10.0)

## Use instead
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

## Confirm it
The script runs again with betas and eps at their defaults and momentum at most 0.9, from the same
seed. Confirmed when the loss then ends clearly lower and does not do so with a tenth of the
learning rate alone; refuted otherwise.

## False alarms
A large eps with a learning rate that was raised to match moves the weights, and stays silent. What
nobody touched (eps of 1e-8 with gradients that are smaller still) is not its affair.

## References
Kingma and Ba, Adam (2015), section 4: convergence wants the square of beta1 below the root of
beta2. PyTorch and TensorFlow recipes for Inception use eps of 0.1 and 1.0, with rates to match.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sawbones.evidence import NothingToJudge, compared, finding
from sawbones.evidence.limits import optimizer as limits
from sawbones.schema import Evidence, Finding, Fix, Optimizer, Run
from sawbones.stats.optimizer_memory import gradient_rms, memory_steps, settling
from sawbones.stats.protocol import update_ratios
from sawbones.stats.series import finite

NEEDS = ("steps", "losses", "optimizers", "tensor_statistics")
EXPLAINS = ("optimizer.lr-too-low", "evaluation.collapsed-prediction", "data.labels-misaligned")
EXPERIMENT = "default_moments"
MIN_STEPS = 10  # sooner nothing can be said of an average


def check(run: Run) -> Iterator[Finding]:
    judged = [o for o in run.optimizers if o.builtin and o.groups]
    if not judged or run.num_steps < MIN_STEPS:
        raise NothingToJudge(f"no optimizer of torch's own, or fewer than {MIN_STEPS} steps")
    for optimizer in judged:
        for group in optimizer.groups:
            found = (
                _large_eps(run, optimizer, group)
                or _unsettled(optimizer, group)
                or _long_memory(run, optimizer, group)
            )
            if found is not None:
                yield found
                return


def _large_eps(run: Run, optimizer: Optimizer, group: Mapping[str, Any]) -> Finding | None:
    eps, size = group.get("eps"), gradient_rms(run, optimizer.index)
    ratios = finite(update_ratios(run))
    if not isinstance(eps, float) or size is None or not len(ratios):
        return None
    moved = float(np.median(ratios))
    share = eps / size
    if (
        not limits.SMALL_UPDATE.suspected_below(moved)
        or not limits.EPS_OVER_GRADIENT.reached_by(share)
        or limits.CHOSEN_EPS.kept_by(eps)
    ):
        return None
    return _finding(
        optimizer,
        f"eps={eps:g} of {optimizer.cls} is {share:.2g} times the size of the gradients",
        compared(
            f"eps is {eps:g}, the root mean square of the gradients {size:.2g}: the update is "
            f"divided by eps, and moves the weights by {moved:.1g} of their size",
            share,
            limits.EPS_OVER_GRADIENT,
            signal="optimizers",
        ),
        "Leave eps at its default of 1e-8.",
        "likely",
    )


def _unsettled(optimizer: Optimizer, group: Mapping[str, Any]) -> Finding | None:
    betas = settling(group)
    if betas is None or not limits.SETTLING_BETAS.passed_by(betas[2]):
        return None
    first, second, quotient = betas
    return _finding(
        optimizer,
        f"betas={first:g}, {second:g} of {optimizer.cls} are known not to settle",
        compared(
            f"the square of beta1 is {quotient:.3g} times the root of beta2",
            quotient,
            limits.SETTLING_BETAS,
            signal="optimizers",
        ),
        "Leave the betas at their defaults of 0.9 and 0.999.",
    )


def _long_memory(run: Run, optimizer: Optimizer, group: Mapping[str, Any]) -> Finding | None:
    momentum, memory = memory_steps(group)
    lengths = memory / run.num_steps
    if not limits.MOMENTUM_MEMORY.passed_by(lengths):
        return None
    return _finding(
        optimizer,
        f"Momentum {momentum:g} of {optimizer.cls} remembers far more steps than the run has",
        compared(
            f"an average over {memory:.0f} steps, in a run of {run.num_steps}",
            lengths,
            limits.MOMENTUM_MEMORY,
            signal="optimizers",
        ),
        "Use a momentum of 0.9.",
    )


def _finding(
    optimizer: Optimizer, title: str, reading: Evidence, fix: str, at_most: str = "suspected"
) -> Finding:
    where = (optimizer.site,) if optimizer.site is not None else ()
    return finding(title, where, (reading,), Fix(fix), at_most=at_most)

"""The loss climbs

## What it measures
The last quarter of the losses against the first tenth. Where the loss of a supervised task was
recognised, its own value counts, also where the backward pass starts from its negative; the end has
to lie above the start and above a constant answer, by a tenth of that and by four standard errors.
Of any other objective only an explosion is certain: ten times the loss at the start and ten times
the weights.

## Null
The noise of both stretches, and the best constant answer. Several optimizers mean a game (GANs),
in which no loss has to fall: it could not look. Objectives of reinforcement learning, annealed sums
and losses that may be negative rise in healthy runs too.

## What it may mean
A learning rate too high, a sign that is wrong, gradients that pile up, a schedule that peaks too
late, a bad batch that threw the run.

## First commands
- `sawbones try lr=0.1 train.py`: healed by a tenth, it is the rate or something that makes
  gradients too large; not healed, look at the sign of the loss and at gradients that pile up.
- `sawbones try clip=1 train.py` heals rare large gradients and not a rate that is too high.
"""

from __future__ import annotations

import math

import numpy as np

from sawbones.evidence import NothingToJudge
from sawbones.evidence.limits import symptoms as limits
from sawbones.schema import Run, Symptom
from sawbones.stats.levels import Level, apart, level, part
from sawbones.stats.protocol import share_the_run
from sawbones.stats.supervised import NotSupervised, beginning, supervised

CLASS = "ill"
CALLED = (
    "diverges",
    "loss climbs",
    "loss goes up",
    "loss rises",
    "loss explodes",
    "loss increases",
    "exploding loss",
    "unstable",
)
NEEDS = ("steps", "losses")
CAUSES = ("data.*", "pipeline.*", "model.*", "loss.*", "optimizer.*", "loop.*")
FEWEST_LOSSES = 12


def look(run: Run) -> Symptom | None:
    try:
        task = supervised(run)
    except NotSupervised as why:
        return _explodes(run, str(why))
    known = int(np.isfinite(task.losses).sum())
    if known < FEWEST_LOSSES:
        raise NothingToJudge(f"{known} finite losses are too few to tell a climb from noise")
    begin, end = beginning(task.losses), level(part(task.losses, 0.75, 1.0))
    constant = Level(task.constant, task.constant_error, 1)
    higher = begin if begin.mean > constant.mean else constant
    if not (
        limits.RISE_OVER_START.reached_by((end.mean - higher.mean) / task.constant)
        and limits.APART.reached_by(apart(end, begin))
        and limits.APART.reached_by(apart(end, constant))
    ):
        return None
    turned = "; the backward pass starts from its negative" if task.sign < 0 else ""
    return _climb(run, begin.mean, end.mean, task.constant, turned)


def _climb(run: Run, begin: float, end: float, constant: float | None, more: str) -> Symptom:
    scored = f"; a constant answer scores {constant:.4g}" if constant is not None else ""
    text = f"the loss climbs ({begin:.4g} to {end:.4g} over {run.num_steps} steps{scored}{more})"
    expected = begin if constant is None else constant
    return Symptom("", CLASS, text, end, expected, (0, run.num_steps - 1))


def _explodes(run: Run, why: str) -> Symptom | None:
    losses = np.asarray(run.losses, np.float64)
    losses = losses[np.isfinite(losses)]
    if share_the_run(run) or len(losses) < FEWEST_LOSSES or np.any(losses < 0):
        raise NothingToJudge(why)
    begin, end = beginning(losses), level(part(losses, 0.75, 1.0))
    sizes = run.steps["param_norm"]
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    grown = float(sizes[-1] / sizes[0]) if len(sizes) > 1 else math.nan
    if (
        begin.mean > 0
        and limits.EXPLODES.reached_by(end.mean / begin.mean)
        and limits.WEIGHTS_EXPLODE.reached_by(grown)
        and limits.APART.reached_by(apart(end, begin))
    ):
        return _climb(
            run, begin.mean, end.mean, None, f"; the weights are {grown:.3g} times as large"
        )
    raise NothingToJudge(why)

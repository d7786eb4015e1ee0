"""Limits of losses with a wrong sign."""

from __future__ import annotations

from sawbones.evidence.limit import Limit

NEGATIVE = Limit(0.0, "backward's start over the loss", "a loss that is minimised enters as itself")
ALWAYS = Limit(1.0, "share of deep steps", "a sign in the source is there on every step")
STEADY = Limit(
    3.0,
    "largest over smallest start of the backward pass, each over its loss",
    "a minus sign gives one factor on every step; a further term moves it a little; weights of both "
    "signs (advantages of a policy) give any factor, by more than ten from step to step",
)
AWAY_FROM_WEIGHT = Limit(
    0.9,
    "share of the policy's gradient against its weights, minus the share with them",
    "each log-probability is weighed by itself, so that the sign is the same for all: it is 1 or -1, "
    "up to an entropy that is estimated from the same draws",
)
GROWN = Limit(
    1.05,
    "last loss over first loss",
    "a twentieth more than at the start, where a run that learns has less; batches of one epoch "
    "scatter by less than that at the start, when all answers are alike",
)
SMALLEST = Limit(1e-12, "loss", "keeps a ratio finite where the first loss is zero")

"""Limits of losses with a wrong sign."""

from __future__ import annotations

from sawbones.evidence.limit import Limit

NEGATIVE = Limit(0.0, "backward's start over the loss", "a loss that is minimised enters as itself")
ALWAYS = Limit(1.0, "share of deep steps", "a sign in the source is there on every step")
GROWN = Limit(
    1.05,
    "last loss over first loss",
    "a twentieth more than at the start, where a run that learns has less; batches of one epoch "
    "scatter by less than that at the start, when all answers are alike",
)
SMALLEST = Limit(1e-12, "loss", "keeps a ratio finite where the first loss is zero")

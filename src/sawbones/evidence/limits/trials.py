"""Limits of what counts as healed in a trial."""

from __future__ import annotations

from sawbones.evidence.limit import Limit

HEALED = Limit(
    3.0,
    "standard errors of the mean difference of paired losses",
    "two runs see the same batches at the same steps; chance alone reaches 3 once in 700 trials",
)
WORTH = Limit(
    0.03,
    "share of where the loss began",
    "two runs that both solved the task end at other small numbers; less is no cure",
)
SAME_RUN = Limit(
    0.01,
    "relative difference of two runs' losses at one step, before anything was changed",
    "rounding grows to less on the way to a spike; runs with other batches or weights differ by "
    "more at some early step",
)
BY_CHANCE = Limit(
    2**-4,
    "chance of being lower at as many of the last steps, were the runs alike",
    "all four of the fewest steps that are compared; a median that one step or a run of zeros "
    "moved does not get there",
)

"""Run the script again with every learning rate times 0.1, from the same seed.

Confirmed when the loss then ends clearly lower (by 15 % of where it began, or finite where it was not) and has come down at all;
refuted when a tenth of the step size does no better. Medians of the last fifth are compared, never single steps.
"""

from __future__ import annotations

import math

from sawbones.experiments.bench import Bench
from sawbones.experiments.child import Remedy
from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.series import end_level, finite

FACTOR = 0.1
CLEARLY = 0.15


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    cured = bench.rerun([Remedy("learning_rate", {"factor": FACTOR})], max_steps=run.num_steps)
    steps = min(cured.num_steps, run.num_steps)
    if steps < 4 or not len(finite(run.losses)):
        return Verdict("learning_rate_tenth", "open", "too few steps to compare")
    begin = float(finite(run.losses)[0])
    was, now = end_level(run.losses[:steps]), end_level(cured.losses[:steps])
    text = f"with a tenth of the learning rate the loss ends at {now:.4g} instead of {was:.4g} (it began at {begin:.4g})"
    size = max(abs(begin), 1e-12)
    behaves = math.isfinite(now) and now < begin - 0.02 * size
    better = not math.isfinite(was) or now < was - CLEARLY * size
    outcome = "confirmed" if behaves and better else "refuted"
    return Verdict("learning_rate_tenth", outcome, text, was, now)

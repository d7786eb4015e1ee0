"""Run the script again with the targets of every batch in another order.

Measured: where the loss ends with the real and with the shuffled targets, over the first epoch
where that is known (later, fixed wrong labels can be memorised, freshly shuffled ones cannot).
Confirmed (the labels say nothing of the inputs, or nothing is learned from them) when the real ones
gain less than 5 %; refuted when they gain more. Open without a loss function of torch to shuffle
for.
"""

from __future__ import annotations

import math

from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.series import end_level
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy

GAIN = 0.05
ENOUGH = 10  # steps


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    steps = _first_epoch(run)
    other = bench.rerun([Remedy("shuffled_labels")], max_steps=steps)
    steps = min(steps, other.num_steps)
    if steps < ENOUGH or not other.remedies.get("shuffled_labels"):
        return Verdict(
            "shuffled_labels",
            "open",
            "too few steps, or no loss function of torch was given targets",
        )
    was, now = end_level(run.losses[:steps]), end_level(other.losses[:steps])
    text = (
        f"the loss ends at {was:.4g} with the real targets and at {now:.4g} with shuffled "
        f"ones after {steps} steps"
    )
    learned = math.isfinite(was) and was < (1 - GAIN) * now
    return Verdict("shuffled_labels", "refuted" if learned else "confirmed", text, now, was)


def _first_epoch(run: Run) -> int:
    later = [
        b.step
        for b in run.batches
        if b.epoch > 0 and b.phase == "train" and b.source.startswith("loader")
    ]
    return min(later) if later and min(later) >= ENOUGH else run.num_steps

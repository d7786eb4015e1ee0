"""Run the first steps with equal micro-batches, no dropout, and compare their accumulated gradient
with that of one large batch of them.

Measured: the ratio of the two norms after the last micro-batch, before any clipping. Confirmed (the
accumulation is not scaled like one batch) when it is off by more than a third; refuted when they
agree. Open without accumulation, or when the loss is written by hand.
"""

from __future__ import annotations

import numpy as np

from sawbones.schema import Finding, Run, Verdict
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy

STEPS = 3
OFF = 1.0 / 3.0
NAME = "accumulation_against_one_batch"


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    same = bench.rerun([Remedy("dropout_off"), Remedy("repeated_microbatch")], max_steps=STEPS)
    rows = [row for row in same.repeated_microbatch if row[0] > 1 and row[2] > 0]
    if not rows:
        return Verdict(
            NAME, "open", "no step accumulates several backward passes of a loss function of torch"
        )
    parts = int(rows[0][0])
    ratio = float(np.median([accumulated / large for _, accumulated, large in rows]))
    text = (
        f"the gradient of {parts} equal micro-batches is {ratio:.3g} times that of one large "
        "batch of them"
    )
    outcome = "refuted" if 1 - OFF < ratio < 1 / (1 - OFF) else "confirmed"
    return Verdict(NAME, outcome, text, rows[0][1], rows[0][2])

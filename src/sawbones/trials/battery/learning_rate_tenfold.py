"""Run the script again with every learning rate times 10, from the same seed.

Confirmed (the learning rate was too low) when the loss then falls at least twice as far and stays
finite; refuted when ten times the step size gains nothing or blows up.
"""

from __future__ import annotations

import math

from sawbones.schema import Finding, Run, Verdict
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy
from sawbones.trials.side_by_side import compare

FACTOR = 10.0
CLEARLY = 0.05  # of where the loss began: below that a longer fall is noise


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    cured = bench.rerun([Remedy("learning_rate", {"factor": FACTOR})], max_steps=run.num_steps)
    pair = compare(run, cured)
    if pair.is_short:
        return Verdict("learning_rate_tenfold", "open", "too few steps to compare")
    fell, falls = max(0.0, pair.begin - pair.was), pair.begin - pair.now
    better = math.isfinite(pair.now) and pair.lower(CLEARLY) and falls > 2 * fell
    text = f"with ten times the learning rate {pair}"
    return Verdict(
        "learning_rate_tenfold", "confirmed" if better else "refuted", text, pair.was, pair.now
    )

"""Run the script again with inputs that say nothing: zeros, and one token id for all.

Measured: where the loss ends without inputs and with them. Confirmed (the model does not use its
inputs) when the real inputs gain less than 5 % of the blind run's loss; refuted when they gain
more.
"""

from __future__ import annotations

import math

from sawbones.schema import Finding, Run, Verdict
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy
from sawbones.trials.side_by_side import compare

GAIN = 0.05


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    blind = bench.rerun([Remedy("constant_input")], max_steps=run.num_steps)
    pair = compare(run, blind)
    if pair.is_short or not blind.remedies.get("constant_input"):
        return Verdict(
            "input_independent_baseline", "open", "too few steps, or no model call to blind"
        )
    if blind.ending.kind == "exception" and run.ending.kind != "exception":
        return Verdict(
            "input_independent_baseline",
            "open",
            f"the script fails on constant inputs: {blind.ending.exception}",
        )
    text = (
        f"the loss ends at {pair.was:.4g} with the real inputs and at {pair.now:.4g} with "
        f"constant ones after {pair.steps} steps"
    )
    used = math.isfinite(pair.was) and pair.was < (1 - GAIN) * pair.now
    return Verdict(
        "input_independent_baseline", "refuted" if used else "confirmed", text, pair.now, pair.was
    )

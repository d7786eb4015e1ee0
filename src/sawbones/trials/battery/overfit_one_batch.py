"""Train on the first batch alone.

Confirmed when its loss falls by a third, or by a tenth and five times as far as with all batches:
model, loss and optimizer can learn, so the data is what they cannot learn from. Refuted when not
even one batch can be learned: the fault lies in them.
"""

from __future__ import annotations

import numpy as np

from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.series import end_level, start_level
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    single = bench.rerun([Remedy("repeat_first_batch")], max_steps=max(run.num_steps, 60))
    both = min(run.num_steps, single.num_steps)
    # Batches are repeated where a loader gives them or a module is called: without either, targets
    # alone may have been.
    reached = single.of_kind("forward", "batch")
    if not reached or np.allclose(
        single.losses[:both], run.losses[:both], rtol=1e-4, equal_nan=True
    ):
        return Verdict(
            "overfit_one_batch",
            "open",
            "the script's batches could not be repeated: its model is no nn.Module",
        )
    begin, end = start_level(single.losses), end_level(single.losses)
    text = (
        f"one repeated batch: loss {begin:.4g} -> {end:.4g} in {single.num_steps} steps; all "
        f"batches: {end_level(run.losses):.4g}"
    )
    fall, fall_of_all = begin - end, max(0.0, start_level(run.losses) - end_level(run.losses))
    memorised = end < 0.67 * begin or (end < 0.9 * begin and fall > 5 * fall_of_all)
    outcome = "confirmed" if memorised else "refuted"
    if memorised and finding.status == "suspected":
        outcome = "open"
        text += "; data that hold nothing to learn look the same"
    return Verdict("overfit_one_batch", outcome, text, end_level(run.losses), end)

"""Train on the first four batches alone, over and over.

Measured: how far their loss falls, against the run on all data. Confirmed when it falls by half, or
by a tenth and three times as far as with all batches: model, loss and optimizer can fit a little
data, so what is wrong lies in the data or in generalising. Refuted when not even four batches can
be fitted: the fault lies in model, loss or optimizer.
"""

from __future__ import annotations

from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.series import end_level, start_level
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy

BATCHES = 4


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    tiny = bench.rerun(
        [Remedy("repeat_first_batch", {"count": BATCHES})], max_steps=max(run.num_steps, 100)
    )
    if tiny.num_steps < 2 * BATCHES:
        return Verdict("tiny_dataset", "open", f"only {tiny.num_steps} steps were taken")
    begin, end = start_level(tiny.losses), end_level(tiny.losses)
    fall, fall_of_all = begin - end, max(0.0, start_level(run.losses) - end_level(run.losses))
    text = f"{BATCHES} repeated batches: loss {begin:.4g} -> {end:.4g} in {tiny.num_steps} steps; "
    text += f"all data: {end_level(run.losses):.4g}"
    fitted = end < 0.5 * begin or (end < 0.9 * begin and fall > 3 * fall_of_all)
    return Verdict(
        "tiny_dataset", "confirmed" if fitted else "refuted", text, end_level(run.losses), end
    )

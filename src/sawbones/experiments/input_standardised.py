"""Run the script again with the input of the first learned layer standardised.

Confirmed when the loss ends at least a quarter lower than it did (as a share of where it began); refuted when it does not.
"""

from __future__ import annotations

from sawbones.experiments.bench import Bench
from sawbones.experiments.child import Remedy
from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.series import end_level, ends_lower, start_level


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    cured = bench.rerun([Remedy("input_standardised")], max_steps=run.num_steps)
    steps = min(cured.num_steps, run.num_steps)
    before, after = end_level(run.losses[:steps]), end_level(cured.losses[:steps])
    text = f"with standardised inputs the loss ends at {after:.4g} instead of {before:.4g} after {steps} steps"
    better = ends_lower(after, before, start_level(cured.losses), 0.25)  # raw inputs alone can make a huge start
    return Verdict("input_standardised", "confirmed" if better else "refuted", text, before, after)

"""Run the script again with the gradient of the loss divided by the number of targets, as a mean
would have it.

The recorded loss stays the sum, so the two runs compare as they are. Confirmed when it ends at most
at 90 % of where it ended and the gain is 3 % of where it began, or ends finite where it had blown
up. Refuted where it ends as much higher: everything else is made for a sum, as an update by hand
that divides by the size of the batch is. In between it is refuted, or left open where the script
contradicts itself anyway.
"""

from __future__ import annotations

from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.series import end_level, ends_lower, start_level
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy

NAME = "mean_for_sum"


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    count = float(finding.params["count"])
    cured = bench.rerun([Remedy("mean_for_sum", {"count": count})], max_steps=run.num_steps)
    steps = min(cured.num_steps, run.num_steps)
    before, after = end_level(run.losses[:steps]) / count, end_level(cured.losses[:steps]) / count
    text = (
        f"with the mean, the loss per target ends at {after:.4g} instead of {before:.4g} "
        f"after {steps} steps"
    )
    began = start_level(run.losses) / count
    better, worse = ends_lower(after, before, began, 0.1), ends_lower(before, after, began, 0.1)
    is_open = finding.params.get("keep") and not worse
    outcome = "confirmed" if better else "open" if is_open else "refuted"
    return Verdict(NAME, outcome, text, before, after)

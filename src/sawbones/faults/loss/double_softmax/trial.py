"""Run the script again with the extra softmax undone: the loss gets the logarithm of the
probabilities, where a single softmax makes them or, whatever made them, where the loss is called.

Confirmed when the loss ends at most at 90 % of where it ended; otherwise open, since that
probabilities went in was seen already.
"""

from __future__ import annotations

from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.series import end_level
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy

NAME = "softmax_removed"


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    if not finding.params:
        return Verdict(NAME, "open", "no call to undo it at: the loss is written out by hand")
    remedy = "softmax_removed" if "classes" in finding.params else "shares_logged"
    cured = bench.rerun([Remedy(remedy, dict(finding.params))], max_steps=run.num_steps)
    steps = min(cured.num_steps, run.num_steps)
    before, after = end_level(run.losses[:steps]), end_level(cured.losses[:steps])
    text = (
        f"without the extra softmax the loss ends at {after:.4g} instead of {before:.4g} "
        f"after {steps} steps"
    )
    if not cured.remedies.get(remedy):
        return Verdict(
            NAME, "open", "the probabilities were not reached in a second run", before, after
        )
    return Verdict(NAME, "confirmed" if after < 0.9 * before else "open", text, before, after)

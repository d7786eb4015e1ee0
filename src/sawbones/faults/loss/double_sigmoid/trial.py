"""Run the script again with the extra sigmoid left out: the loss gets the scores as they were
before it.

Confirmed when the loss ends at most at 90 % of where it ended; otherwise open, since the sigmoid
was seen already.
"""

from __future__ import annotations

from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.series import end_level
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy

NAME = "sigmoid_removed"


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    if not finding.params:
        return Verdict(NAME, "open", "no single sigmoid to leave out")
    cured = bench.rerun([Remedy("sigmoid_removed", dict(finding.params))], max_steps=run.num_steps)
    steps = min(cured.num_steps, run.num_steps)
    before, after = end_level(run.losses[:steps]), end_level(cured.losses[:steps])
    text = (
        f"without the extra sigmoid the loss ends at {after:.4g} instead of {before:.4g} "
        f"after {steps} steps"
    )
    reached = bool(cured.remedies.get(NAME))
    return Verdict(
        NAME,
        "confirmed" if reached and after < 0.9 * before else "open",
        text,
        before,
        after,
    )

"""Run the script again with one operator kept inside its domain: logarithm, root and divisor above
zero, exponent below overflow.

Confirmed when every loss is then finite and the run does not diverge; refuted when it still blows
up.
"""

from __future__ import annotations

import numpy as np

from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.series import diverged, end_level
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy

NAME = "domain_guarded"


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    if not finding.params.get("file"):
        return Verdict(NAME, "open", "the operator's line is not known")
    cured = bench.rerun([Remedy("domain_guarded", dict(finding.params))], max_steps=run.num_steps)
    bad, still = int(np.sum(~np.isfinite(run.losses))), int(np.sum(~np.isfinite(cured.losses)))
    norms = cured.steps["grad_norm"]
    text = (
        f"{still} of {cured.num_steps} losses are non-finite instead of {bad} of "
        f"{run.num_steps}; the loss ends at "
    )
    text += f"{end_level(cured.losses):.4g}"
    if not cured.remedies.get(NAME):
        return Verdict(NAME, "open", "the operator was not reached in a second run")
    broken = still or diverged(cured.losses, 3.0) or bool(np.any(np.isinf(norms) | np.isnan(norms)))
    return Verdict(
        NAME,
        "refuted" if broken else "confirmed",
        text,
        end_level(run.losses),
        end_level(cured.losses),
    )

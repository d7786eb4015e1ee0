"""Run the script again with sinusoidal codes added to the token vectors.

Confirmed when the loss ends at least a fifth lower than without, by at least a twentieth of where
it began (what is all but learned differs by chance from run to run); refuted when positions bring
nothing.
"""

from __future__ import annotations

import math

from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.series import end_level
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy

GAIN = 0.8
WORTH = 0.05


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    cured = bench.rerun([Remedy("positions_added", dict(finding.params))], max_steps=run.num_steps)
    steps = min(cured.num_steps, run.num_steps)
    loss, cured_loss = end_level(run.losses[:steps]), end_level(cured.losses[:steps])
    text = (
        f"with positional codes the loss ends at {cured_loss:.4g} instead of {loss:.4g}, "
        f"after {steps} steps"
    )
    if steps < 5 or not math.isfinite(loss) or not math.isfinite(cured_loss):
        return Verdict("positions_added", "open", text, loss, cured_loss)
    first = float(run.losses[0]) if math.isfinite(float(run.losses[0])) else loss
    better = cured_loss < GAIN * loss and loss - cured_loss > WORTH * abs(first)
    return Verdict("positions_added", "confirmed" if better else "refuted", text, loss, cured_loss)

"""Run the script again with its loss scaled up during backward, as a GradScaler would, from the
same seed.

Measured: the share of gradient elements that are exactly zero at the first measured step, and where
the loss ends. Confirmed (gradients are lost to half precision) when at least 5 of 100 elements come
back, or the loss ends lower by 15 % of where it began; refuted when scaling changes neither.
"""

from __future__ import annotations

from sawbones.schema import Finding, Run, Verdict
from sawbones.trials.battery.float64 import BACK, zero_share
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy
from sawbones.trials.side_by_side import compare

CLEARLY = 0.15


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    cured = bench.rerun([Remedy("loss_scale_on")], max_steps=run.num_steps)
    pair = compare(run, cured)
    if pair.steps < 1 or not cured.remedies.get("loss_scale_on"):
        return Verdict("loss_scale_on", "open", "no backward pass was reached")
    zero, cured_zero = zero_share(run), zero_share(cured)
    text = (
        f"with loss scaling {cured_zero:.0%} of the first gradients are zero instead of "
        f"{zero:.0%}; {pair}"
    )
    better = zero - cured_zero > BACK or (not pair.is_short and pair.lower(CLEARLY))
    return Verdict("loss_scale_on", "confirmed" if better else "refuted", text, zero, cured_zero)

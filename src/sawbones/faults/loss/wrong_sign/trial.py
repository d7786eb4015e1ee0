"""Run the script again with every gradient turned round before the optimizer's step, or, where
distances are taken for scores, with the scores turned round.

Measured: where the loss ends; where the backward pass starts from negative numbers, their negative
is the loss. Confirmed when it then ends lower than it began and lower than before; refuted when it
does not.
"""

from __future__ import annotations

from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.series import end_level, start_level
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy

NAME = "gradient_turned"


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    params = dict(finding.params)
    remedy = Remedy("scores_turned", params) if params else Remedy("gradient_turned")
    turned = bench.rerun([remedy], max_steps=run.num_steps)
    if params and not turned.remedies.get(remedy.name):
        return Verdict(NAME, "open", "the loss was not reached in a second run")
    steps = min(turned.num_steps, run.num_steps)
    if steps < 8:
        return Verdict(NAME, "open", f"{steps} steps are too few to compare")
    # Losses against targets are never negative: a negative start is the negative of one.
    sign = -1 if start_level(run.losses) < 0 else 1
    begin = start_level(sign * turned.losses[:steps])
    was, now = end_level(sign * run.losses[:steps]), end_level(sign * turned.losses[:steps])
    text = (
        f"with the {'scores' if params else 'gradients'} turned round the loss ends at {now:.4g} instead of {was:.4g} "
        f"(it began at {begin:.4g})"
    )
    return Verdict(NAME, "confirmed" if now < min(begin, was) else "refuted", text, was, now)

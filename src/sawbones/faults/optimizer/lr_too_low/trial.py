"""Run the script again with every learning rate raised by the finding's factor, from the same seed;
on by steps of three where that helps, as long as the next one helps clearly more.

Confirmed (the learning rate was too low) when the loss then ends lower by 15 % of where it began;
refuted when the larger steps gain nothing or blow up.
"""

from __future__ import annotations

import math

from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.series import end_level, start_level
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy
from sawbones.trials.side_by_side import best_rate

NAME = "learning_rate_raised"
CLEARLY = 0.15


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    factor = float(finding.params.get("factor", 100.0))
    cured = bench.rerun([Remedy("learning_rate", {"factor": factor})], max_steps=run.num_steps)
    steps = min(cured.num_steps, run.num_steps)
    if steps < 4:
        return Verdict(NAME, "open", "too few steps to compare")
    begin, was = start_level(run.losses), end_level(run.losses[:steps])
    now = end_level(cured.losses[:steps])
    better = math.isfinite(now) and now < was - CLEARLY * abs(begin)
    if better:
        factor, cured = best_rate(bench, run, factor, cured, math.sqrt(10))
        now = end_level(cured.losses[:steps])
    text = (
        f"with {factor:.3g} times the learning rate the loss ends at {now:.4g} instead of "
        f"{was:.4g} (it began at {begin:.4g})"
    )
    outcome = "confirmed" if better else "refuted"
    return Verdict(NAME, outcome, text, was, now, details={"factor": factor} if better else {})

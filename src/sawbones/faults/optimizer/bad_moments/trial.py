"""Run the script again with betas and eps at their defaults and momentum at most 0.9.

Confirmed when the loss then ends lower by 15 % of where it began, and does not with a tenth of the
learning rate alone; refuted otherwise.
"""

from __future__ import annotations

from sawbones.schema import Finding, Run, Verdict
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy
from sawbones.trials.side_by_side import compare

NAME = "default_moments"
CLEARLY = 0.15


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    cured = bench.rerun([Remedy("default_moments")], max_steps=run.num_steps)
    pair = compare(run, cured)
    if pair.is_short:
        return Verdict(NAME, "open", "too few steps to compare")
    text = f"with betas, eps and momentum as usual {pair}"
    if not pair.lower(CLEARLY):
        return Verdict(NAME, "refuted", text, pair.was, pair.now)
    slower = bench.rerun([Remedy("learning_rate", {"factor": 0.1})], max_steps=run.num_steps)
    other = compare(run, slower)
    if other.lower(CLEARLY):
        text += f"; but so it does with a tenth of the learning rate: {other}"
        return Verdict(NAME, "refuted", text, pair.was, pair.now)
    return Verdict(NAME, "confirmed", text, pair.was, pair.now)

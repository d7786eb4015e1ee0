"""Run the script again without looking at its operators, and time the waiting once more.

Looking slows the model down, and samples that are made of tensors, so the share of waiting comes
out wrong. Confirmed when the median step then waits for more than 85 % of its time and at least 20
ms; refuted when it does not; open on a machine with more work than cores.
"""

from __future__ import annotations

from sawbones.evidence.limits import pipeline as limits
from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.waiting import waiting
from sawbones.trials.bench import Bench

NAME = "waiting_measured"
SHARE = 0.85
WAIT_MS = 20.0


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    again = bench.rerun(max_steps=min(run.num_steps, 80))
    found = waiting(again)
    if found is None:
        return Verdict(NAME, "open", "too few steps to time")
    if limits.BUSY_SHARE.reached_by(again.cpu_time.waiting_share):
        return Verdict(NAME, "open", "other work had the cores: no time to be measured now")
    text = (
        f"unwatched, the median step waits {found.wait_ms:.1f} of {found.step_ms:.1f} ms "
        f"({found.share:.0%})"
    )
    starved = found.share >= SHARE and found.wait_ms >= WAIT_MS
    return Verdict(NAME, "confirmed" if starved else "refuted", text)

"""Run the script again with every model call with gradients in training mode.

Measured: how many such calls were in the other mode with dropout or normalisation that cares, and
how far the answer of the first of them is from that in the right mode. Confirmed (it trained in
evaluation mode) when it is more than 1e-4 of its size away; refuted when no call was in the other
mode, or when the answer is the same in both.
"""

from __future__ import annotations

from sawbones.schema import Finding, Run, Verdict
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy
from sawbones.trials.mode_verdicts import judge_modes


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    cured = bench.rerun([Remedy("train_mode")], max_steps=run.num_steps or None)
    return judge_modes("train_mode", cured.modes, "calls with gradients", "training mode")

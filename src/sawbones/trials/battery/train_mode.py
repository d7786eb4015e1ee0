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

MATTERS = 1e-4


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    cured = bench.rerun([Remedy("train_mode")], max_steps=run.num_steps or None)
    seen = cured.modes
    if not seen.calls:
        return Verdict("train_mode", "open", "no model call with gradients was seen")
    changed, distance = seen.changed, seen.distance
    text = f"{changed} of {seen.calls} calls with gradients were not in training mode; "
    text += f"the right mode moves the answer by {distance:.2g}"
    return Verdict(
        "train_mode",
        "confirmed" if changed and distance > MATTERS else "refuted",
        text,
        distance,
        0.0,
    )

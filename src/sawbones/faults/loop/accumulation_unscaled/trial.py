"""Run a few steps again and take the gradient norm right after the last backward pass and again at
the step.

Confirmed when both agree: nothing divides the accumulated sum. Refuted when the gradients were
divided in between. Where clipping shortens them the two differ as well, and the question is open
unless the ratio is that of the micro-batches.
"""

from __future__ import annotations

import numpy as np

from sawbones.schema import Finding, Run, Verdict
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy

NAME = "gradient_until_step"


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    gauged = bench.rerun([Remedy("gradient_until_step")], max_steps=min(run.num_steps, 8))
    rows = np.asarray(gauged.gradient_until_step, np.float64)
    rows = (
        rows[np.isfinite(rows).all(axis=1)] if len(rows) else rows
    )  # a run that diverges says nothing from there on
    if not len(rows):
        return Verdict(NAME, "open", "no gradient could be taken between backward and step")
    ratio = float(np.median(rows[:, 1] / np.maximum(rows[:, 0], 1e-30)))
    text = f"the gradient at the step is {ratio:.3g} times the one after the last backward pass"
    if ratio > 0.99:
        return Verdict(NAME, "confirmed", text + ": nothing divides it", 1.0, ratio)
    if run.of_kind("clip"):
        return Verdict(NAME, "open", text + ", but it is also clipped", 1.0, ratio)
    return Verdict(NAME, "refuted", text, 1.0, ratio)

"""Run the script again with gradients clipped to the median norm of its own calm steps, from the
same seed.

Measured: where the loss ends. Confirmed (a few exploding gradients throw the run) when it then ends
lower by 15 % of where it began, or finite where it was not, and no higher than it began; refuted
when clipping gains nothing, or only makes the run climb more slowly.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sawbones.schema import Finding, Run, Verdict
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy
from sawbones.trials.side_by_side import compare

NAME = "clip_on"
CLEARLY = 0.15
FIRST = 5  # steps


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    norms = run.steps.get("grad_norm", np.zeros(0))
    calm = norms[np.isfinite(norms) & (norms > 0)]
    if not len(calm):
        return Verdict(NAME, "open", "no finite gradient norm was recorded")
    limit = float(finding.params.get("max_norm") or _calm_norm(calm))
    cured = bench.rerun([Remedy("clip_on", {"max_norm": limit})], max_steps=run.num_steps)
    pair = compare(run, cured)
    if pair.is_short:
        return Verdict(NAME, "open", "too few steps to compare")
    text = f"with gradients clipped to a norm of {limit:.3g} {pair}"
    return Verdict(
        NAME,
        "confirmed" if pair.cured(CLEARLY) else "refuted",
        text,
        pair.was,
        pair.now,
        details={"max_norm": limit},
    )


def _calm_norm(norms: npt.NDArray[np.float64]) -> float:
    """The median of the first half, or of the first steps where the half has exploded already."""
    return float(min(np.median(norms[:FIRST]), np.median(norms[: max(FIRST, len(norms) // 2)])))

"""Run the script again with the input of the first learned layer standardised.

Confirmed when the loss ends at least a quarter lower than it did (as a share of where it began), or
when inputs of huge scale kept the first part of the run far above the level at which it begins with
standardised ones; refuted otherwise.
"""

from __future__ import annotations

import math

import numpy as np

from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.series import end_level, ends_lower, finite, start_level
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy

NAME = "input_standardised"
EARLY, FEWEST = 6, 5  # a sixth of the run, and no fewer steps than this
HUGE, FAR = 50.0, 5.0


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    cured = bench.rerun([Remedy("input_standardised")], max_steps=run.num_steps)
    steps = min(cured.num_steps, run.num_steps)
    before, after = end_level(run.losses[:steps]), end_level(cured.losses[:steps])
    start = start_level(cured.losses)
    text = (
        f"with standardised inputs the loss ends at {after:.4g} instead of {before:.4g} after "
        f"{steps} steps"
    )
    better = ends_lower(after, before, start, 0.25)  # raw inputs alone can make a huge start
    early = run.losses[: max(steps // EARLY, 1)]
    level = float(np.median(finite(early))) if len(finite(early)) >= FEWEST else 0.0
    scale = max((e.value or 0.0 for e in finding.evidence), default=0.0)
    if not better and math.isfinite(after) and scale > HUGE and start > 0 and level > FAR * start:
        text += (
            f"; the first {len(early)} steps are spent at {level:.4g} (median), with "
            f"standardised inputs they begin at {start:.4g}"
        )
        better = True
    return Verdict(NAME, "confirmed" if better else "refuted", text, before, after)

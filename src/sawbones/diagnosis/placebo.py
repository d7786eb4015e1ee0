"""A script that is another run each time: a trial's gain has to exceed what no remedy gains.

A trial compares one run with one more. From one seed the remedy is all that differs between them.
Without one, weights and batches differ as well, so the trial is repeated with its remedy left out,
and what is measured then is the null.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from sawbones.evidence.limits.trials import SAME_RUN
from sawbones.schema import Run, Verdict
from sawbones.trials.bench import Bench, ChildFailed

# With three runs as they are, a fourth lies below them all by more than they span once in 20 times.
NUM_PLACEBOS = 2


def is_another_run_each_time(run: Run) -> bool:
    differs = run.twin_run.differs if run.twin_run is not None else None
    if differs is None or differs.what == "ending":
        return False
    return differs.what != "loss" or SAME_RUN.reached_by(differs.relative)


def against_placebo(
    bench: Bench, trial: Callable[[], Verdict], run: Run, verdict: Verdict
) -> Verdict:
    """The verdict of `trial`, where it still stands beside runs without the remedy; else open."""
    if verdict.outcome != "confirmed" or not is_another_run_each_time(run):
        return verdict
    if verdict.baseline is None or verdict.with_remedy is None:
        return verdict  # nothing of two runs was compared
    untreated = [verdict.baseline]
    for _ in range(NUM_PLACEBOS):
        try:
            with bench.without_remedies():
                placebo = trial()
        except ChildFailed as error:
            return _open(verdict, f"without the remedy: {str(error).splitlines()[0]}")
        if placebo.outcome == "confirmed":
            return _open(verdict, f"a run without the remedy gains as much: {placebo.result}")
        if placebo.with_remedy is not None:
            untreated.append(placebo.with_remedy)
    if not _beyond(untreated, verdict.with_remedy):
        spread = f"{min(untreated):.4g} to {max(untreated):.4g}"
        return _open(verdict, f"runs without the remedy are at {spread}")
    return verdict


def _beyond(untreated: list[float], treated: float) -> bool:
    """Outside of what was measured without the remedy by more than that spans."""
    if not all(map(math.isfinite, (*untreated, treated))):
        return math.isfinite(treated)
    low, high = min(untreated), max(untreated)
    return max(low - treated, treated - high) > high - low


def _open(verdict: Verdict, why: str) -> Verdict:
    result = f"{verdict.result}; but the script is another run each time, and {why}"
    return replace(verdict, outcome="open", result=result)

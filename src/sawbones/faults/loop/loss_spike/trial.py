"""Run the script again without the update from the suspected batches (`steps` of the finding, else
the first spike of the loss).

Measured: the level of the loss over the steps after them. Confirmed (the batch throws the run) when
it is lower by 15 % of where the loss began, or by 40 % and more than noise, or finite where it was
not; refuted when it is the same without them. The loss of the skipped batch itself is not compared.
Open where the two runs differ before the first update that is left out: then it is another run, with
other batches, and what comes later says nothing of this one.
"""

from __future__ import annotations

import math

from sawbones.evidence.limits.trials import SAME_RUN
from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.relative import relative_difference
from sawbones.stats.series import end_level, first_nonfinite, noise, spikes, start_level
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy

NAME = "skip_batch"
CLEARLY = 0.15
# of the loss itself: what was learnt later than the spike is small beside where the loss began
FAR = 0.4
AFTER = 30  # steps; the averages of an adaptive optimizer carry a spike for about that long


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    steps = [int(s) for s in finding.params.get("steps", ())] or _suspected(run)
    if not steps:
        return Verdict(NAME, "open", "no single batch stands out")
    last = max(steps) + 1 + AFTER
    cured = bench.rerun(
        [Remedy("skip_batch", {"steps": steps})], max_steps=min(last, run.num_steps)
    )
    if cured.num_steps <= max(steps) + 1:
        return Verdict(NAME, "open", "the run ends with the suspected batch")
    if (apart := _apart_before(run, cured, min(steps))) is not None:
        return Verdict(
            NAME,
            "open",
            f"the run does not repeat: without the update of step {min(steps)} its loss is another "
            f"one from step {apart} on",
        )
    after = slice(max(steps) + 1, min(last, run.num_steps, cured.num_steps))
    was, now = (_level(r, after) for r in (run, cured))
    begin = start_level(run.losses[: max(steps[0], 1)])
    text = (
        f"without the update of step {', '.join(map(str, steps[:5]))} the loss of the next "
        f"steps is {now:.4g} instead of {was:.4g}"
    )
    far = (
        was - now > FAR * abs(was)
        and was - now > 3 * noise(run.losses[after])
        and was > 0.02 * abs(begin)
    )
    lower = math.isfinite(now) and (
        not math.isfinite(was) or was - now > CLEARLY * abs(begin) or far
    )
    return Verdict(NAME, "confirmed" if lower else "refuted", text, was, now)


def _apart_before(run: Run, again: Run, first: int) -> int | None:
    """The first step up to the skipped one at which the two runs' losses differ by more than
    rounding can have grown to.
    """
    pairs = zip(run.losses[: first + 1], again.losses[: first + 1], strict=False)
    return next(
        (
            step
            for step, (a, b) in enumerate(pairs)
            if SAME_RUN.reached_by(relative_difference(float(a), float(b)))
        ),
        None,
    )


def _level(run: Run, part: slice) -> float:
    return end_level(run.losses[part], share=1.0)


def _suspected(run: Run) -> list[int]:
    """The batch whose update came right before, or whose own loss is, the first thing out of
    line.
    """
    found = [s for s in (*spikes(run.losses)[:1], first_nonfinite(run.losses)) if s is not None]
    first = min(found, default=None)
    return [] if first is None else [s for s in (first - 1, first) if s >= 0]

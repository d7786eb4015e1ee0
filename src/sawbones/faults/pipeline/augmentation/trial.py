"""Run the script again with the random choices made on the way to the model held at one value.

For a data set every sample is read from the same state of the random streams; for a loop the
streams are set back before every batch, and the first batch is repeated, with and without.
Confirmed when the loss falls by a third where it did not before, or ends at a third of where it
ended.
"""

from __future__ import annotations

from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.series import end_level, start_level
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy

NAME = "draws_held"


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    steps = max(run.num_steps, 60)
    if finding.params.get("mode") == "loop":
        held = bench.rerun(
            [Remedy("repeat_first_batch"), Remedy("draws_held", {"mode": "loop"})], max_steps=steps
        )
        free = bench.rerun([Remedy("repeat_first_batch")], max_steps=steps)
    else:
        held, free = bench.rerun([Remedy("draws_held", {"mode": "data"})], max_steps=steps), run
    fall = 1.0 - end_level(held.losses) / start_level(held.losses)
    fall_free = 1.0 - end_level(free.losses) / start_level(free.losses)
    text = (
        f"with random choices held the loss falls by {fall:.0%}, with them free by {fall_free:.0%}"
    )
    works = fall > 0.33 and (
        fall > 2 * max(fall_free, 0.0) or end_level(held.losses) < 0.35 * end_level(free.losses)
    )
    return Verdict(
        NAME,
        "confirmed" if works else "refuted",
        text,
        end_level(free.losses),
        end_level(held.losses),
    )

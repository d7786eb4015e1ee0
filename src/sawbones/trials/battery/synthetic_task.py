"""Train the script's own model, loss and optimizer on data that are known to be learnable, in the
same shapes and dtypes: a linear teacher, and of tokens the tokens themselves.

Confirmed when that loss falls by 15 % of where it began: model, loss and optimizer can learn, so
what is wrong lies in the data or the pipeline. Refuted when it does not: the fault lies in them.
Open where the loss is no built-in one or inputs and targets do not belong together row by row.
"""

from __future__ import annotations

import math

from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.series import end_level, start_level
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy

NAME = "synthetic_task"
STEPS = 100
CLEARLY = 0.15


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    taught = bench.rerun([Remedy("synthetic_task")], max_steps=max(run.num_steps, STEPS))
    if not taught.remedies.get("synthetic_task"):
        return Verdict(NAME, "open", "its targets could not be replaced: no built-in loss was seen")
    begin, end = start_level(taught.losses), end_level(taught.losses)
    text = (
        f"on a task that is known to be learnable the loss goes from {begin:.4g} to {end:.4g} in "
        f"{taught.num_steps} steps"
    )
    learned = math.isfinite(end) and begin - end > CLEARLY * abs(begin)
    return Verdict(NAME, "confirmed" if learned else "refuted", text, begin, end)

"""Start the script a second time in the folder that the first time left.

Confirmed when it loads the checkpoint and goes on with an optimizer that keeps state and got none
back; refuted when it does not load one, or gives everything back.
"""

from __future__ import annotations

from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.resuming import not_restored, resumes
from sawbones.trials.bench import Bench

NAME = "resumed_run"


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    room = bench.room()
    saves = [e.step for e in run.of_kind("save") if e.step > 0]
    bench.rerun(max_steps=(saves[0] if saves else run.num_steps) + 1, room=room)
    second = bench.rerun(room=room, journal=True)
    for resume in resumes(second):
        optimizer = not_restored(second, resume)
        if optimizer is not None:
            text = (
                f"started again, it loads the checkpoint and goes on with an empty {optimizer.cls}"
            )
            return Verdict(NAME, "confirmed", text)
        return Verdict(NAME, "refuted", "started again, it gives the optimizer its state back")
    return Verdict(NAME, "refuted", "started again, it does not go on from the checkpoint")

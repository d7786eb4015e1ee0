"""Run the script a second time as it is, with the same seed.

Measured: batches and losses of both runs in order, bit for bit. Confirmed (something random is not
seeded) when they differ; the first differing event is named with its place. Refuted when they agree
as far as both went.
"""

from __future__ import annotations

from dataclasses import asdict

from sawbones.schema import Finding, Run, Verdict
from sawbones.schema.one_off import Difference, TwinRun
from sawbones.trials.bench import Bench
from sawbones.trials.twin import compare

STEPS = 25


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    second = twin(bench, run)
    if second.differs is not None:
        details = asdict(second.differs)
        return Verdict("same_seed_twice", "confirmed", told(second.differs), details=details)
    if not second.steps:
        return Verdict("same_seed_twice", "open", "neither run took a step")
    return Verdict(
        "same_seed_twice", "refuted", f"two runs agree bit for bit over {second.steps} steps"
    )


def twin(bench: Bench, run: Run) -> TwinRun:
    """The comparison with a second run: the recorded one, or made now."""
    if run.twin_run is not None:
        return run.twin_run
    return compare(run, bench.rerun(max_steps=min(run.num_steps, STEPS) or None))


def told(found: Difference) -> str:
    place = f" ({found.site})" if found.site else ""
    if found.what == "loss":
        return (
            f"the loss of step {found.step} differs first: {found.first:.8g} and "
            f"{found.second:.8g}{place}"
        )
    if found.what == "ending":
        return f"one run ends with {found.first}, the other with {found.second}"
    kind = "the order of the batches" if found.what == "batch_order" else "the values of a batch"
    return f"{kind} differs first, at batch {found.index} of step {found.step}{place}"

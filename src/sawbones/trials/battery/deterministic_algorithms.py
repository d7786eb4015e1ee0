"""Run the script twice with deterministic algorithms, and compare the two runs.

Measured: the first event at which they differ. Confirmed (a non-deterministic kernel is the cause)
when two plain runs differ and these two do not; refuted when these differ as well: the randomness
comes from elsewhere, or when the plain runs agree.
"""

from __future__ import annotations

from sawbones.schema import Finding, Run, Verdict
from sawbones.trials.battery.same_seed_twice import STEPS, told, twin
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy
from sawbones.trials.twin import compare


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    plain = twin(bench, run)
    if plain.differs is None:
        return Verdict(
            "deterministic_algorithms",
            "refuted",
            f"two plain runs agree over {plain.steps} steps",
        )
    remedies = [Remedy("deterministic_algorithms")]
    limit = min(run.num_steps, STEPS) or None
    first, second = (bench.rerun(remedies, max_steps=limit, batch_samples=0) for _ in range(2))
    still = compare(first, second).differs
    if still is None:
        steps = min(first.num_steps, second.num_steps)
        text = (
            f"two runs with deterministic algorithms agree over {steps} steps; without, "
            f"{told(plain.differs)}"
        )
        return Verdict("deterministic_algorithms", "confirmed", text)
    return Verdict(
        "deterministic_algorithms",
        "refuted",
        f"also with deterministic algorithms {told(still)}",
    )

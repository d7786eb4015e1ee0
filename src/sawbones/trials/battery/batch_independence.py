"""Change one example of the captured batch, on a copy of the model in evaluation mode.

Measured: how far the outputs of the other examples move. Confirmed (examples are mixed) above 1e-4,
refuted below 1e-5. Batch normalisation does not count: in evaluation mode it uses its running
statistics.
"""

from __future__ import annotations

from sawbones.schema import Finding, Run, Verdict
from sawbones.trials.bench import Bench
from sawbones.trials.properties import measured

LEAKS, ROUNDING = 1e-4, 1e-5


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    found = measured(bench, run, "batch")
    if isinstance(found, str):
        return Verdict("batch_independence", "open", found)
    others, own = float(found["others"]), float(found["own"])
    text = (
        f"another last example moves the outputs of the other examples by {others:.2g} and "
        f"its own by {own:.2g}"
    )
    outcome = "confirmed" if others > LEAKS else "refuted" if others < ROUNDING else "open"
    return Verdict("batch_independence", outcome, text, others, 0.0)

"""Change every token from the middle on, on a copy of the model with the captured batch, dropout
off.

Measured: how far the outputs before the middle move, relative to their size. Confirmed (the future
leaks) above 1e-4, refuted below 1e-5; in between rounding could be the reason.
"""

from __future__ import annotations

from sawbones.schema import Finding, Run, Verdict
from sawbones.trials.bench import Bench
from sawbones.trials.properties import measured

LEAKS, ROUNDING = 1e-4, 1e-5


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    found = measured(bench, run, "causality")
    if isinstance(found, str):
        return Verdict("causality", "open", found)
    before, after = float(found["before"]), float(found["after"])
    text = (
        f"other tokens from position {found['cut']} on move the outputs before it by "
        f"{before:.2g} and those after it by {after:.2g}"
    )
    outcome = "confirmed" if before > LEAKS else "refuted" if before < ROUNDING else "open"
    return Verdict("causality", outcome, text, before, 0.0)

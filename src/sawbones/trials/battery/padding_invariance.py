"""Give the shortest example of the captured batch alone and without its padding, on a copy of the
model, dropout off.

Measured: how far its outputs on real tokens move. Confirmed (padding leaks) above 1e-3, refuted
below 1e-5; in between other kernels for other shapes could be the reason.
"""

from __future__ import annotations

from sawbones.schema import Finding, Run, Verdict
from sawbones.trials.bench import Bench
from sawbones.trials.properties import measured

LEAKS, ROUNDING = 1e-3, 1e-5


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    found = measured(bench, run, "padding")
    if isinstance(found, str):
        return Verdict("padding_invariance", "open", found)
    moved = float(found["real"])
    text = (
        f"without its {found['cut']} padded positions the answer for an example moves by "
        f"{moved:.2g}"
    )
    outcome = "confirmed" if moved > LEAKS else "refuted" if moved < ROUNDING else "open"
    return Verdict("padding_invariance", outcome, text, moved, 0.0)

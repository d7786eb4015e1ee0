"""Run the script again without any dropout, from the same initial weights.

Measured: where the training loss ends. Confirmed (dropout keeps the model from fitting) when it
ends lower by 15 % of where it began; refuted when it does not. Open when no dropout was reached.
"""

from __future__ import annotations

from sawbones.schema import Finding, Run, Verdict
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy
from sawbones.trials.side_by_side import compare

CLEARLY = 0.15


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    cured = bench.rerun([Remedy("dropout_off")], max_steps=run.num_steps, deep_steps=(0, 5))
    pair = compare(run, cured)
    if pair.is_short:
        return Verdict("dropout_off", "open", "too few steps to compare")
    text = f"without dropout {pair}"
    return Verdict(
        "dropout_off", "confirmed" if pair.lower(CLEARLY) else "refuted", text, pair.was, pair.now
    )

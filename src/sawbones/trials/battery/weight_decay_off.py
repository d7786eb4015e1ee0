"""Run the script again with every weight decay at 0, from the same seed.

Measured: where the loss and the norm of all parameters end. Confirmed (decay holds the weights
down) when the loss ends lower by 10 % of where it began, or when the parameters lost a fifth of
their norm and lose less than half of that without decay; refuted when neither moves.
"""

from __future__ import annotations

import numpy as np

from sawbones.schema import Finding, Run, Verdict
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy
from sawbones.trials.side_by_side import compare

CLEARLY = 0.1
SHRUNK = 0.2


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    if not any(group.get("weight_decay") for o in run.optimizers for group in o.groups):
        return Verdict(
            "weight_decay_off", "refuted", "no optimizer of this run has any weight decay"
        )
    cured = bench.rerun([Remedy("weight_decay_off")], max_steps=run.num_steps, deep_steps=(0, 5))
    pair = compare(run, cured)
    if pair.is_short:
        return Verdict("weight_decay_off", "open", "too few steps to compare")
    lost, loses = _lost(run, pair.steps), _lost(cured, pair.steps)
    text = (
        f"without weight decay {pair}; the parameters lose {loses:.0%} of their norm instead "
        f"of {lost:.0%}"
    )
    better = pair.lower(CLEARLY) or (lost > SHRUNK and loses < 0.5 * lost)
    return Verdict(
        "weight_decay_off", "confirmed" if better else "refuted", text, pair.was, pair.now
    )


def _lost(run: Run, steps: int) -> float:
    norms = run.steps.get("param_norm", np.zeros(0))[:steps]
    known = norms[np.isfinite(norms) & (norms > 0)]
    return float(1.0 - known[-1] / known[0]) if len(known) > 1 else 0.0

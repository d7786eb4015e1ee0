"""Compare the first loss with that of a model that knows nothing: log C for C classes, log 2 for
yes or no.

Measured: the value that went into the first backward pass. Confirmed (scale of the outputs,
reduction or loss are wrong) when it is more than 1.5 times as large or less than half; refuted
within that. Only where the first captured loss has classes, and only on step 0: later the model
knows something.
"""

from __future__ import annotations

import math

from sawbones.schema import Finding, LossCall, Run, Verdict
from sawbones.trials.bench import Bench

HIGH, LOW = 1.5, 0.5


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    calls = [call for deep in run.deep if deep.step == 0 for call in deep.losses if call.facts.main]
    known = [(call, chance) for call in calls if (chance := _chance(call)) is not None]
    if not known:
        return Verdict(
            "loss_at_initialisation", "open", "no loss over classes was captured on step 0"
        )
    call, chance = known[0]
    value = float(run.losses[0]) if run.num_steps else float(call.value or math.nan)
    text = f"the first loss is {value:.4g}; a model that knows nothing has {chance:.4g}"
    off = not math.isfinite(value) or not LOW * chance <= value <= HIGH * chance
    return Verdict("loss_at_initialisation", "confirmed" if off else "refuted", text, value, chance)


def _chance(call: LossCall) -> float | None:
    classes = call.facts.num_classes or 0
    if call.fn in ("cross_entropy", "nll_loss") and classes > 1:
        return math.log(classes)
    return math.log(2.0) if call.fn.startswith("binary_cross_entropy") else None

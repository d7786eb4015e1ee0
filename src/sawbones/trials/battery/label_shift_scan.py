"""Move the targets of the captured batches against the inputs and the outputs, from 3 steps back to
3 ahead.

Measured: at which shift the targets are the input tokens, and at which shift the loss of the last
deep step is lowest. Confirmed when the targets are the input at another shift than one ahead, or
when another shift has a loss lower by a tenth; refuted when they are the next token, or when no
other shift does better.
"""

from __future__ import annotations

from sawbones.schema import Finding, Run, Verdict
from sawbones.trials.bench import Bench

COPIES = 0.9
CLEARLY = 0.1


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    tables = [call.facts.shift for deep in run.deep for call in deep.losses if call.facts.shift]
    if not tables:
        return Verdict(
            "label_shift_scan", "open", "no loss over a sequence of targets was captured"
        )
    table = {int(k): dict(v) for k, v in tables[-1].items()}
    copies = {k: float(v["copies"]) for k, v in table.items() if "copies" in v}
    best_copy = max(copies, key=lambda k: copies[k], default=None)
    if best_copy is not None and copies[best_copy] > COPIES:
        share = f"{copies[best_copy]:.0%} of the targets are the input token at t{best_copy:+d}"
        next_token = copies.get(1, 0.0) > COPIES
        return Verdict(
            "label_shift_scan",
            "refuted" if next_token else "confirmed",
            share,
            float(best_copy),
            1.0,
        )
    losses = {k: float(v["loss"]) for k, v in table.items() if "loss" in v}
    if 0 not in losses:
        return Verdict(
            "label_shift_scan", "open", "the loss could not be computed for moved targets"
        )
    best = min(losses, key=lambda k: losses[k])
    text = (
        f"the loss is lowest, {losses[best]:.4g}, with the targets moved by {best:+d}; as "
        f"they are it is {losses[0]:.4g}"
    )
    moved = best != 0 and losses[best] < (1 - CLEARLY) * losses[0]
    return Verdict(
        "label_shift_scan", "confirmed" if moved else "refuted", text, losses[0], losses[best]
    )

"""Run the script again with gradients cleared after every optimizer step.

Confirmed when the gradient norm ends at most half as large, or the loss ends clearly lower; refuted
when neither moves.
"""

from __future__ import annotations

from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.series import end_level
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy

NAME = "zero_grad_added"


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    cured = bench.rerun([Remedy("zero_grad_added")], max_steps=run.num_steps)
    steps = min(cured.num_steps, run.num_steps)
    loss, cured_loss = end_level(run.losses[:steps]), end_level(cured.losses[:steps])
    norm, cured_norm = (
        end_level(run.steps["grad_norm"][:steps]),
        end_level(cured.steps["grad_norm"][:steps]),
    )
    text = (
        f"gradient norm ends at {cured_norm:.3g} instead of {norm:.3g}, loss at "
        f"{cured_loss:.4g} instead of {loss:.4g}"
    )
    better = cured_norm < 0.5 * norm or cured_loss < 0.9 * loss
    return Verdict(NAME, "confirmed" if better else "refuted", text, loss, cured_loss)

"""Training mode while training, evaluation mode while evaluating."""

from __future__ import annotations

from sawbones.schema import Run
from sawbones.stats.evaluations import active_layers
from sawbones.stats.loss_calls import as_site
from sawbones.testing.wording import broken, steps_taken


def assert_trains_in_train_mode(run: Run) -> None:
    """Every forward pass that leads to an optimizer step runs with the model in training mode."""
    steps_taken(run)
    stepped = {e.step for e in run.of_kind("step")}
    calls = [
        e
        for e in run.of_kind("forward")
        if e.data.get("top") and e.data.get("grad") and e.step in stepped
    ]
    wrong = [e for e in calls if e.data.get("training") is False]
    if wrong:
        found = (
            f"{wrong[0].data.get('module') or 'the model'} is in eval mode in {len(wrong)} of "
            f"{len(calls)} training passes"
        )
        raise broken(
            found, "model.train() before every training pass", wrong[0].step, wrong[0].site
        )


def assert_evaluates_in_eval_mode(run: Run) -> None:
    """Passes without gradients draw no dropout and use no batch statistics."""
    steps_taken(run)
    rows = list(active_layers(run))
    if rows:
        row = rows[0]
        count = sum(int(r["count"]) for r in rows)
        found = f"{row['kind']} ({row['op']}) is active in evaluation, {count} calls in all"
        raise broken(
            found,
            "0: model.eval() before every evaluation",
            int(row["step"]),
            as_site(row.get("site")),
        )

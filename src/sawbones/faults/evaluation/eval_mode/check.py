"""Evaluation with dropout drawing or batch normalisation on the statistics of the batch

## What it sees
Every operator of a model that runs without gradients, or with gradients that no backward pass comes
through (on rows that were not trained on, by a line that does not train): a dropout that really
draws, or a batch normalisation that has running statistics and does not use them. Fires when the
outputs of such a pass go into a metric or a loss; at the first evaluation.

## Why it matters
The metric is noisy and too low, early stopping and checkpoint selection follow noise, and batch
normalisation moves its running statistics on validation data.

## Looks like
Validation is worse than training from the start, differs between two passes over the same data, and
depends on the batch size.

## Example
    @torch.no_grad()
    def evaluate(model, loader):
        return sum((model(x).argmax(1) == y).sum().item() for x, y in loader)

## Use instead
    @torch.no_grad()
    def evaluate(model, loader):
        model.eval()
        return sum((model(x).argmax(1) == y).sum().item() for x, y in loader)

## Confirm it
No experiment is needed: the layers were seen drawing, or using the batch, while the metric was
made.

## False alarms
A model without dropout and batch normalisation does the same in both modes and stays silent.
Recomputing running statistics (update_bn) uses no output. A teacher, a target network or a
generator that runs without gradients inside of a training step makes no metric, and neither does a
call with the very batch that is trained on next (pseudo labels, assignments to clusters). The same batch
passed three times or more is Monte Carlo dropout. Batch normalisation without running statistics
has nothing else to use.

## References
Named in PyTorch's own notes on autograd ("evaluation mode") as a thing of its own, apart from
no_grad.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.evidence.limits import evaluation as limits
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.schema.evaluation import ActiveLayer
from sawbones.stats.evaluations import READS
from sawbones.stats.splits import told_apart
from sawbones.trace.feeding import model_calls
from sawbones.trace.locate import locate

NEEDS = ("events", "validation", "evaluation")
EXPLAINS = (
    "evaluation.overfitting",
    "evaluation.metric-averaging",
    "model.batchnorm-small-batch",
    "evaluation.collapsed-prediction",
)
EXPERIMENT = None
MONTE_CARLO = 3  # passes of one batch from which on their spread is what is wanted


def check(run: Run) -> Iterator[Finding]:
    losses = _steps_with_losses(run)
    judged = _judged_steps(run, losses)
    if not judged:
        raise NothingToJudge("no output of an evaluation goes into a metric or a loss")
    rows = [
        r
        for r in run.evaluation.active
        # a model that computes its loss itself: nothing is done with its outputs here
        if r.step in judged and (r.used or r.step in losses) and not _is_of_training(r)
    ]
    if not rows:
        return
    steps = sorted({r.step for r in rows})
    kinds = " and ".join(sorted({r.kind for r in rows}))
    in_train_mode = [r for r in rows if r.training]
    num_draws = sum(r.count for r in in_train_mode or rows)
    if in_train_mode:
        lines = [r.line for r in in_train_mode if r.line is not None]
        sites: list[Site | None] = [*(lines or model_calls(run, "eval", steps))[:1]]
        title = f"The model is evaluated in training mode ({kinds} active)"
        fix = "Call model.eval() before the evaluation, and model.train() before training goes on."
        text = (
            f"{num_draws} calls with {kinds} active in {len(steps)} evaluations, with the model "
            "in training mode"
        )
    else:
        sites = [r.site for r in rows]
        op = rows[0].op
        title = f"Dropout stays on in eval mode ({op} is not told that training is over)"
        fix = (
            "Pass training=self.training (or dropout_p=p if self.training else 0.0), or use an "
            "nn.Dropout module."
        )
        text = (
            f"{num_draws} calls of {op} drew in {len(steps)} evaluations although the model was "
            "in eval mode"
        )
    reading = exact(text, num_draws, signal="evaluation", steps=steps[:5])
    yield finding(title, locate(*sites), (reading,), Fix(fix))


def _is_of_training(layer: ActiveLayer) -> bool:
    """Each of its calls was given a batch that was trained on right after it."""
    return 0 < layer.calls <= layer.trained


def _steps_with_losses(run: Run) -> set[int]:
    return {e.step for e in run.of_kind("loss") if e.phase == "eval"}


def _judged_steps(run: Run, losses: set[int]) -> set[int]:
    """Steps before which an evaluation took place whose outputs were measured."""
    _, evaluated = told_apart(run)
    batches: dict[int, set[tuple[int, ...]]] = {}
    for batch in evaluated:
        batches.setdefault(batch.step, set()).add(batch.fingerprints)
    measured = set(losses)
    read: set[int] = set()
    for node in run.evaluation.nodes:
        if node.op == "eq" and "output" in node.roles and len(node.roles) == 2:
            measured.update(node.steps)
        elif node.op in READS and "output" in node.roles:
            read.update(node.steps)
    all_passes = [(p.step, p.calls) for p in run.evaluation.passes]
    per_step = len({step for step, _ in all_passes}) / max(run.num_steps, 1)
    if not limits.PASSES_PER_STEP.passed_by(per_step):
        measured |= read & {b.step for b in evaluated if b.source != "model"}
    return {
        step
        for step, calls in all_passes
        # the same batch again and again: its spread is wanted
        if step in measured and calls < MONTE_CARLO * (len(batches.get(step, ())) or calls)
    }

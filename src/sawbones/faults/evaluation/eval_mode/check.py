"""Evaluation with dropout drawing or batch normalisation on the statistics of the batch

## What it sees
Every operator of a model that runs without gradients: a dropout that really draws, or a batch
normalisation that has running statistics and does not use them. Fires when the outputs of such a
pass go into a metric or a loss; at the first evaluation.

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
generator that runs without gradients inside of a training step makes no metric. The same batch
passed three times or more is Monte Carlo dropout. Batch normalisation without running statistics
has nothing else to use.

## References
Named in PyTorch's own notes on autograd ("evaluation mode") as a thing of its own, apart from
no_grad.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.evaluations import EQUALS, READS, active_layers, nodes, passes
from sawbones.stats.loss_calls import as_site
from sawbones.stats.splits import forward_site, told_apart

NEEDS = ("events", "validation", "evaluation")
EXPLAINS = (
    "evaluation.overfitting",
    "evaluation.metric-averaging",
    "model.batchnorm-small-batch",
    "evaluation.collapsed-prediction",
)
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    judged = _judged_steps(run)
    rows = [
        r
        for r in active_layers(run)
        if r["step"] in judged and (r.get("used", True) or _by_loss(run, r))
    ]
    if not rows:
        return
    steps = sorted({int(r["step"]) for r in rows})
    always = [r for r in rows if not r["training"]]
    in_train_mode = [r for r in rows if r["training"]]
    kinds = sorted({str(r["kind"]) for r in rows})
    chosen = in_train_mode or always
    num_draws = sum(int(r["count"]) for r in chosen)
    sites: list[Site] = []
    forward = forward_site(run, "eval", steps)
    if in_train_mode:
        sites += [forward] if forward else []
        title = f"The model is evaluated in training mode ({' and '.join(kinds)} active)"
        fix = Fix(
            "Call model.eval() before the evaluation, and model.train() before training goes on."
        )
        text = (
            f"{num_draws} calls with {' and '.join(kinds)} active in {len(steps)} "
            "evaluations, with the model in training mode"
        )
    else:
        sites += [s for r in always if (s := as_site(r["site"])) is not None]
        title = (
            f"Dropout stays on in eval mode ({chosen[0]['op']} is not told that training is over)"
        )
        fix = Fix(
            "Pass training=self.training (or dropout_p=p if self.training else 0.0), or "
            "use an nn.Dropout module."
        )
        text = (
            f"{num_draws} calls of {chosen[0]['op']} drew in {len(steps)} evaluations "
            "although the model was in eval mode"
        )
    evidence = Evidence(text, "evaluation", tuple(steps[:5]), float(num_draws), 0.0)
    yield Finding(
        "evaluation.eval-mode", "proven", 0.95, title, tuple(dict.fromkeys(sites)), (evidence,), fix
    )


def _by_loss(run: Run, row: Mapping[str, Any]) -> bool:
    """The model computes its loss itself: it is read without anything being done with the outputs
    here.
    """
    return any(e.phase == "eval" and e.step == row["step"] for e in run.of_kind("loss"))


def _judged_steps(run: Run) -> set[int]:
    """Steps before which an evaluation took place whose outputs were measured."""
    _, evaluated = told_apart(run)
    batches: dict[int, list[tuple[int, ...]]] = {}
    from_loader: set[int] = set()
    for batch in evaluated:
        batches.setdefault(batch.step, []).append(batch.fingerprints)
        if batch.source != "model":
            from_loader.add(batch.step)
    losses = {e.step for e in run.of_kind("loss") if e.phase == "eval"}
    measured: set[int] = set()
    read: set[int] = set()
    for node in nodes(run):
        if node.op in EQUALS and "output" in node.roles and len(node.roles) == 2:
            measured.update(node.steps)
        elif node.op in READS and "output" in node.roles:
            read.update(node.steps)
    rare = {int(p["step"]) for p in passes(run)}
    in_steps = len(rare) > 0.5 * max(run.num_steps, 1)
    found = set()
    for entry in passes(run):
        step, calls = int(entry["step"]), int(entry["calls"])
        distinct = len(set(batches.get(step, ()))) or calls
        if calls >= 3 * distinct:
            continue  # the same batch again and again: its spread is wanted
        if (
            step in losses
            or step in measured
            or (not in_steps and step in read and step in from_loader)
        ):
            found.add(step)
    return found

"""One class predicted for everything

## What it sees
The predictions that are compared with targets in evaluations, or the largest output of every
evaluated sample. Fires when the last two evaluations give one class for at least 99 % of 30 or more
samples, although no class makes up more than 80 % of the targets. In training, on deep steps from
step 5 on: the scores that the loss is given. Fires when on all of them, two or more, they are the
same for every sample of the batch up to rounding, although inputs and targets differ.

## Why it matters
The score equals that of a constant. Nothing about the input is used.

## Looks like
Accuracy stands exactly at the share of one class and does not move.

## Example
    logits = torch.relu(head(features))  # all of them 0 as soon as the units are dead
    loss = criterion(logits, y)

## Use instead
    logits = head(features)
    loss = criterion(logits, y)

## Confirm it
No experiment: predictions and targets are counted. The cause is often another fault, which then
stands before this one.

## False alarms
A model before it has learnt anything: at least 20 steps and two evaluations must have passed. Rare
positives: a class that makes up more than 80 % of the targets may well be predicted everywhere. A
last layer that starts at zero answers alike at first, and has moved by step 5; a batch of equal
samples, or of equal targets as a discriminator is given, tells nothing.

## References
The "majority class classifier" of imbalanced learning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sawbones.evidence import NothingToJudge, counted, finding
from sawbones.evidence.limits import TINY
from sawbones.evidence.limits import evaluation as limits
from sawbones.evidence.limits.loss import STEPS_AGREEING
from sawbones.schema import DeepStep, Evidence, Finding, Fix, Run, Site
from sawbones.schema.evaluation import EvaluationPass
from sawbones.stats.loss_calls import as_site
from sawbones.stats.splits import label_counts, told_apart
from sawbones.trace.feeding import model_calls
from sawbones.trace.locate import locate

NEEDS = ("steps",)
USES = ("source_numbers", "made_tensors", "evaluation")
EXPLAINS = ()
EXPERIMENT = None
MIN_STEPS = 20  # before an evaluation counts: a model first has to learn something
MIN_SAMPLES = 30  # in an evaluation
LAST = 2  # evaluations, or deep steps, that have to agree
FIRST_STEP = 5  # before it a last layer that starts at zero may answer alike

_Said = tuple[Evidence, Site | None]


def check(run: Run) -> Iterator[Finding]:
    late = [p for p in run.evaluation.passes if p.step >= MIN_STEPS]
    trained = _scores_of_training(run)
    if run.num_steps < MIN_STEPS or (not late and len(trained) < LAST):
        raise NothingToJudge(f"no evaluation after {MIN_STEPS} steps, and no scores of training")
    if len(run.losses) and not np.isfinite(run.losses[-1]):
        raise NothingToJudge("the answers are no numbers any more: the largest of them is no class")
    found = (_by_argmax(run, late[-LAST:]) or _by_comparison(run)) if late else None
    if found is None:
        yield from _in_training(trained)
        return
    reading, site = found
    yield finding(
        "One class is predicted for everything",
        locate(*_decayed(run), *_lost_at(run), site, *run.optimizers),
        (reading,),
        Fix(
            "Look at what the last layer gets: its inputs, its initial weights, the loss, "
            "the class weights and the LR."
        ),
    )


def _scores_of_training(run: Run) -> list[tuple[DeepStep, Mapping[str, Any]]]:
    """Deep steps whose inputs and targets differ from sample to sample."""
    measured = [(deep, deep.probes.get("alike")) for deep in run.deep if deep.step >= FIRST_STEP]
    return [
        (deep, seen)
        for deep, seen in measured
        if isinstance(seen, dict) and seen["inputs"] and seen["targets"]
    ]


def _in_training(trained: list[tuple[DeepStep, Mapping[str, Any]]]) -> Iterator[Finding]:
    """The loss is given the same scores for every sample."""
    same = [
        (deep, seen)
        for deep, seen in trained
        if limits.ALIKE_BY_ROUNDING.kept_by(seen["spread"] / max(seen["scale"], TINY))
    ]
    if len(same) < LAST or len(same) < len(trained):
        return
    deep, seen = same[-1]
    steps = [deep.step for deep, _ in same[:5]]
    text = (
        f"at step {deep.step} the scores of {seen['rows']} samples differ by {seen['spread']:.3g} "
        f"at most; their inputs differ by {seen['inputs']:.3g}, their targets by "
        f"{seen['targets']:.3g}"
    )
    lost = as_site(seen.get("site"))
    if lost is not None:
        text += f"; {seen['op']} at {lost} makes them alike"
    losses = [call.site for call in deep.losses]
    reading = counted(text, len(same), len(trained), STEPS_AGREEING, signal="deep", steps=steps)
    yield finding(
        "The output does not depend on the input: every sample gets the same answer",
        locate(lost, *losses),
        (reading,),
        Fix(
            "Follow the input through the model: it is replaced, averaged over the batch, "
            "multiplied by zero or saturated on the way."
        ),
    )


def _by_argmax(run: Run, late: Sequence[EvaluationPass]) -> _Said | None:
    if len(late) < LAST:
        return None
    _, evaluated = told_apart(run)
    asked = (n for n in run.evaluation.nodes if n.op == "eq" and n.roles[0] == "output")
    asked_counts = next((n.target_counts for n in asked if n.target_counts), {})
    texts, largest, total = [], 0, 0
    for entry in late:
        scores = [k for k in entry.predictions if k.startswith("argmax")]
        kinds = [entry.predictions[k] for k in scores]
        targets = label_counts(b for b in evaluated if b.step == entry.step) or asked_counts
        if len(kinds) != 1 or sum(targets.values()) < MIN_SAMPLES:
            return None
        if len(targets) > int(scores[0].rpartition(" ")[2]):
            return None  # more classes than outputs: one output says "beyond this class"
        counts = kinds[0]
        which = max(counts, key=lambda c: counts[c])
        largest, total = counts[which], sum(counts.values())
        most = max(targets.values()) / sum(targets.values())
        if (
            total < MIN_SAMPLES
            or not limits.ONE_CLASS.reached_by(largest / total)
            or not limits.COMMONEST_TARGET.kept_by(most)
        ):
            return None
        texts.append(
            f"class {which} for {largest} of {total} samples at step {entry.step}, "
            f"while no class has more than {most:.0%}"
        )
    reading = counted("; ".join(texts), largest, total, limits.ONE_CLASS, signal="evaluation")
    return reading, next(iter(model_calls(run, "eval")), None)


def _by_comparison(run: Run) -> _Said | None:
    for node in run.evaluation.nodes:
        late = [s for s in node.steps if s >= MIN_STEPS]
        if node.op != "eq" or node.roles[0] != "output" or len(late) < LAST:
            continue
        if len(node.given) != 2 or not all(g.num for g in node.given):
            continue
        predicted, target = node.given
        binary = (target.min, target.max) == (0, 1)
        ones, num = target.mean, predicted.num
        constant = predicted.min == predicted.max
        both = limits.COMMONEST_TARGET.kept_by(max(ones, 1 - ones))
        if binary and both and constant and num >= LAST * MIN_SAMPLES:
            text = (
                f"{num} predictions are all {predicted.max:g}, while {ones:.0%} of the targets "
                "are 1"
            )
            return counted(text, num, num, limits.ONE_CLASS, signal="evaluation"), node.site
    return None


def _decayed(run: Run) -> list[Site]:
    """Where a weight decay is set that alone takes the weights to a hundredth within the run:
    nothing can be learnt against it.
    """
    rates = run.steps["lr"][np.isfinite(run.steps["lr"])]
    groups = [
        g
        for o in run.optimizers
        for g in (*o.groups, o.defaults)
        if isinstance(g.get("weight_decay"), (int, float))
    ]
    strongest = max((float(g["weight_decay"]) for g in groups), default=0)
    # momentum repeats what the decay takes
    repeated = 1 / max(1 - max((g.get("momentum") or 0 for g in groups), default=0), 1 / 100)
    if not limits.DECAY_TAKEN.reached_by(strongest * float(rates.sum()) * repeated):
        return []
    set_at = [
        number.site
        for number in run.source_numbers
        if number.name and number.value == strongest and "decay" in number.site.code
    ]
    built = [o.site for o in run.optimizers if o.site is not None]
    return [*set_at[:1], *built][:2]


def _lost_at(run: Run) -> list[Site | None]:
    """Where the samples become alike: the operator whose result no longer depends on them, and the
    norm that stands before it.
    """
    rows = run.evaluation.constant
    if not rows:
        return []
    before = rows[-1].after.replace("_", "")
    norms = [m.cls for m in run.modules if "norm" in before and m.cls.lower().startswith(before)]
    made = locate(*run.made_tensors)
    named = [s for s in made if any(f"{cls}(" in s.code for cls in norms)]
    return [rows[-1].site, *named[-1:]]

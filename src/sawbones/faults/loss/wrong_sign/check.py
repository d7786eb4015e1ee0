"""A loss that is maximised where it should be minimised

## What it sees
A loss that compares outputs with targets, how the value that the backward pass starts from changes
with it, and the way that the optimizer goes: down, or up with `maximize=True`. Fires when the steps
climb the loss on every deep step, whether by a minus sign before the backward pass or by the
optimizer, and the loss itself has grown since the first of them. Needs two deep steps.

## Why it matters
Every step makes the answers worse. The number that is printed may even fall, since it is the
negative that is being minimised.

## Looks like
A loss that climbs steadily from the first step, or a "loss" that falls without end below zero while
accuracy goes under chance.

## Example
    loss = F.cross_entropy(model(x), y)
    (-loss).backward()

## Use instead
    loss = F.cross_entropy(model(x), y)
    loss.backward()

## Confirm it
The script runs again with every gradient turned round before the step. Confirmed when the loss then
ends clearly lower than it began; refuted when it does not.

## False alarms
Rewards and log-likelihoods are maximised by minimising their negative: they are no loss against
targets. A negative loss under an optimizer that maximises is the loss minimised. Games of two (GANs, domain-adversarial training, gradient reversal) maximise a loss with
some of the parameters; they have several terms or optimizers, and stay silent. Unlearning and
adversarial examples climb on purpose: the first stays a suspicion that the trial confirms, the
second does not change weights.

## References
The most frequent slip in hand-written policy gradients and likelihoods; PyTorch's forum has many
threads on a "loss that goes to minus infinity".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sawbones.evidence import NothingToJudge, compared, counted, finding
from sawbones.evidence.limits import loss as loss_limits
from sawbones.evidence.limits import signs as limits
from sawbones.schema import Finding, Fix, Run
from sawbones.stats.loss_calls import Seen, carrying
from sawbones.trace.locate import locate
from sawbones.trace.operators import AGAINST_TARGETS

NEEDS = ("loss_calls", "steps", "backward")
EXPLAINS = (
    "optimizer.lr-too-high",
    "loop.exploding-gradients",
    "loop.loss-spike",
    "data.labels-misaligned",
    "evaluation.collapsed-prediction",
)
EXPERIMENT = "gradient_turned"


def check(run: Run) -> Iterator[Finding]:
    calls = [s for s in carrying(run) if s.call.fn in AGAINST_TARGETS and s.is_finite]
    known = [s for s in calls if s.facts.root_over_mean is not None]
    if len(known) < 2 or len(run.optimizers) > 1:
        raise NothingToJudge("no single loss against targets was seen on two deep steps")
    slopes = [_slope(s) for s in known]
    if not limits.STEADY.kept_by(_spread(slopes)):
        raise NothingToJudge("the loss is weighted anew on every step: its sign says nothing")
    climbing = _climbing(run)
    if climbing is None:
        raise NothingToJudge("the optimizer maximises for a part of the parameters only")
    way = -1 if climbing else 1
    turned = [
        s
        for s, slope in zip(known, slopes, strict=True)
        if limits.NEGATIVE.undercut_by(way * slope)
        and limits.NEGATIVE.undercut_by(way * s.number("root_over_mean"))
    ]
    first, last = _value(known[0]), _value(known[-1])
    if len(turned) < len(known) or not limits.GROWN.reached_by(last / first):
        return
    fn, optimizer = known[0].call.fn, run.optimizers[0] if run.optimizers else None
    backward = next((e.site for e in run.of_kind("backward") if e.site is not None), None)
    if climbing:
        title = f"{fn} is maximised: the optimizer climbs what the backward pass starts from"
        text = f"the optimizer has maximize=True, and its objective rises with {fn}"
        where = locate(optimizer, backward, known[0].call)
        fix = "Leave maximize at False, or hand the optimizer the negative of the loss."
    else:
        title = f"{fn} is maximised: the backward pass starts from its negative"
        text = (
            f"the backward pass starts from {known[0].number('root_over_mean'):.4g} times the loss"
        )
        where = locate(backward, known[0].call)
        fix = "Call backward() on the loss itself, not on its negative."
    yield finding(
        title,
        where,
        (
            counted(
                f"{text}, on {len(turned)} of {len(known)} deep steps",
                len(turned),
                len(known),
                limits.ALWAYS,
                signal="loss_calls",
                steps=[s.deep.step for s in turned],
            ),
            compared(
                f"{fn} grows from {first:.4g} at step {known[0].deep.step} to "
                f"{last:.4g} at step {known[-1].deep.step}",
                last,
                limits.GROWN,
                against=first,
                signal="loss_calls",
                steps=(known[0].deep.step, known[-1].deep.step),
            ),
        ),
        Fix(fix),
    )


def _climbing(run: Run) -> bool | None:
    """The optimizer goes up what it is given; None where only some of its groups do."""
    ways = {bool(g.get("maximize")) for o in run.optimizers for g in (o.groups or (o.defaults,))}
    return ways == {True} if len(ways) < 2 else None


def _slope(seen: Seen) -> float:
    """How the start of the backward pass changes with the loss, from its gradient: further terms
    beside the loss leave it alone. Else the one over the other.
    """
    weights = seen.facts.weights
    if weights is not None and loss_limits.WEIGHTS_FIT.passed_by(weights.fit):
        return weights.sum
    return seen.number("root_over_mean")


def _spread(starts: Sequence[float]) -> float:
    sizes = [max(abs(start), limits.SMALLEST.value) for start in starts]
    return max(sizes) / min(sizes)


def _value(seen: Seen) -> float:
    """Of the whole loss; of its mean where the script reduces it by hand."""
    value = seen.call.value if seen.call.value is not None else seen.facts.mean_of_elements
    return float(value or 0) or limits.SMALLEST.value

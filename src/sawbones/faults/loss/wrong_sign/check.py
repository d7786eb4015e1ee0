"""A loss that is maximised where it should be minimised

## What it sees
A loss that compares outputs with targets, and the value that the backward pass starts from: on
every deep step one is a negative multiple of the other, and the loss itself has grown since the
first of them. It fires once two deep steps have been seen.

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
targets. Games of two (GANs, domain-adversarial training, gradient reversal) maximise a loss with
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
    starts = [s.number("root_over_mean") for s in known]
    turned = [
        s for s, start in zip(known, starts, strict=True) if limits.NEGATIVE.undercut_by(start)
    ]
    if not limits.STEADY.kept_by(_spread(starts)):
        raise NothingToJudge("the loss is weighted anew on every step: its sign says nothing")
    first, last = _value(known[0]), _value(known[-1])
    if len(turned) < len(known) or not limits.GROWN.reached_by(last / first):
        return
    backward = next((e.site for e in run.of_kind("backward") if e.site is not None), None)
    yield finding(
        f"{known[0].call.fn} is maximised: the backward pass starts from its negative",
        locate(backward, known[0].call),
        (
            counted(
                f"the backward pass starts from {known[0].number('root_over_mean'):.4g} times the "
                f"loss, on {len(turned)} of {len(known)} deep steps",
                len(turned),
                len(known),
                limits.ALWAYS,
                signal="loss_calls",
                steps=[s.deep.step for s in turned],
            ),
            compared(
                f"{known[0].call.fn} grows from {first:.4g} at step {known[0].deep.step} to "
                f"{last:.4g} at step {known[-1].deep.step}",
                last,
                limits.GROWN,
                against=first,
                signal="loss_calls",
                steps=(known[0].deep.step, known[-1].deep.step),
            ),
        ),
        Fix("Call backward() on the loss itself, not on its negative."),
    )


def _spread(starts: Sequence[float]) -> float:
    sizes = [max(abs(start), limits.SMALLEST.value) for start in starts]
    return max(sizes) / min(sizes)


def _value(seen: Seen) -> float:
    return float(seen.call.value or 0) or limits.SMALLEST.value

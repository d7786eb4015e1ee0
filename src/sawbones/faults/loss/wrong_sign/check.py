"""A loss that is maximised where it should be minimised

## What it sees
A loss that compares outputs with targets, how the value that the backward pass starts from changes
with it, and the way that the optimizer goes: down, or up with `maximize=True`. Fires when the steps
climb the loss on every deep step, whether by a minus sign before the backward pass or by the
optimizer, and the loss itself has grown since the first of them. Also when the scores of
cross_entropy are distances on every deep step, as they are: sums of squared differences, norms of
differences, or what cdist gives. And a policy: log-probabilities of what was drawn are weighed, on
every deep step the gradient makes less likely what weighs more, and the rewards that the script
prints (by its own words: return, reward, score, success, length of an episode) do not rise. Needs
two deep steps.

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
ends clearly lower than it began; refuted when it does not. Where distances are taken for scores,
these are turned round instead. Of a policy only the log-probabilities' gradients are; confirmed when
the printed rewards then end above all that they were, refuted when they do not.

## False alarms
Rewards and log-likelihoods are maximised by minimising their negative: they are no loss against
targets. Costs (the length of a tour, a loss that is estimated by a score function) weigh actions as
rewards do, and less likely is right for them: without a printed reward, or where it rises, nothing
is said. A negative loss under an optimizer that maximises is the loss minimised. Games of two (GANs, domain-adversarial training, gradient reversal) maximise a loss with
some of the parameters; they have several terms or optimizers, and stay silent. Unlearning and
adversarial examples climb on purpose: the first stays a suspicion that the trial confirms, the
second does not change weights.

## References
The most frequent slip in hand-written policy gradients and likelihoods; PyTorch's forum has many
threads on a "loss that goes to minus infinity".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sawbones.evidence import NothingToJudge, compared, context, counted, finding
from sawbones.evidence.limits import loss as loss_limits
from sawbones.evidence.limits import signs as limits
from sawbones.schema import Finding, Fix, Op, Run
from sawbones.stats.drawn_losses import DrawnLoss, drawn_losses
from sawbones.stats.loss_calls import Seen, carrying
from sawbones.stats.printed_series import Series, rewards
from sawbones.trace.graph import StepGraph
from sawbones.trace.locate import locate
from sawbones.trace.operators import AGAINST_TARGETS

NEEDS = ("deep", "steps", "backward")
USES = ("loss_calls", "probes", "lines")
EXPLAINS = (
    "optimizer.lr-too-high",
    "loop.exploding-gradients",
    "loop.loss-spike",
    "data.labels-misaligned",
    "evaluation.collapsed-prediction",
)
EXPERIMENT = "gradient_turned"
_OVER_CLASSES = "cross_entropy"
_SCALING = frozenset(
    {"mul", "div", "sqrt", "mul_", "div_", "add"}
)  # by numbers: none is below zero
_SQUARES = frozenset({"pow", "square", "mul"})
_NORMS = frozenset({"norm", "vector_norm", "linalg_norm", "linalg_vector_norm"})


def check(run: Run) -> Iterator[Finding]:
    drawn = drawn_losses(run)
    if drawn:
        yield from _policy(run, drawn)
        return
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
        yield from _distances(known)
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


def _policy(run: Run, drawn: Sequence[DrawnLoss]) -> Iterator[Finding]:
    """What weighs more is made less likely. That is right for costs and wrong for rewards: which of
    them it is, the script says where it prints how training goes.
    """
    away = [one for one in drawn if limits.AWAY_FROM_WEIGHT.reached_by(one.agreement)]
    if len(drawn) < 2 or len(away) < len(drawn) or len(run.optimizers) > 2:
        return
    printed = rewards(text for _, text in run.lines)
    told = [s for s in printed.values() if not s.of_length or all(one.each for one in drawn)]
    if not told or any(s.rises() for s in told):
        return
    shown = min(told, key=Series.gain)
    places = {(site.file, site.line, fn) for one in drawn for site, fn in one.places}
    yield finding(
        "The policy is driven away from what is rewarded: the minus sign before its loss is missing",
        locate(*drawn[0].term, *(site for site, _ in drawn[0].places)),
        (
            counted(
                "the gradient makes actions the less likely the more they weigh in the loss, on "
                f"{len(away)} of {len(drawn)} deep steps",
                len(away),
                len(drawn),
                limits.ALWAYS,
                signal="probes",
                steps=[one.step for one in away],
            ),
            context(
                f"'{shown.label}', as the script prints it, goes from {shown.values[0]:.4g} to "
                f"{shown.level:.4g}",
                signal="lines",
                value=shown.level,
                expected=shown.values[0],
            ),
        ),
        Fix(
            "Minimise the negative: loss = -(log_prob * advantage).mean(), and for a clipped "
            "surrogate -torch.min(...).mean()."
        ),
        at_most="suspected",  # weights may be costs: how training goes with the other sign decides
        params={"places": sorted(places)},
    )


def _distances(known: Sequence[Seen]) -> Iterator[Finding]:
    """The farthest class is the likeliest: what is small for the right class is given to a loss that
    makes its score large.
    """
    found = [(s, made) for s in known if s.call.fn == _OVER_CLASSES and (made := _far(s))]
    call = known[0].call
    if len(found) < len(known) or call.site is None:
        return
    made = found[0][1]
    yield finding(
        f"{call.fn} is given distances as scores: the farthest class counts as the likeliest",
        locate(made, call),
        (
            counted(
                f"{made.name} makes the scores of differences, none of them below zero, on "
                f"{len(found)} of {len(known)} deep steps",
                len(found),
                len(known),
                limits.ALWAYS,
                signal="loss_calls",
                steps=[s.deep.step for s, _ in found],
            ),
        ),
        Fix("Give the loss the negative of the distances."),
        at_most="suspected",  # the trial shows whether it is the cure
        params={"file": call.site.file, "line": call.site.line},
    )


def _far(seen: Seen) -> Op | None:
    """The operator that makes the scores, where they are distances."""
    graph = StepGraph(seen.deep, with_no_grad=True)
    value, before = seen.call.input, seen.call.op
    if value.min is None or limits.NEGATIVE.undercut_by(value.min):
        return None
    made = graph.origin(value, before)[1]
    while made is not None and made.name in _SCALING and len(made.inputs) == 1:
        made = graph.origin(made.inputs[0], made.index)[1]
    if made is None or made.name == "cdist":
        return made
    squares = graph.origin(made.inputs[0], made.index)[1] if made.inputs else None
    if made.name in ("sum", "mean") and squares is not None and squares.name in _SQUARES:
        squares = graph.origin(squares.inputs[0], squares.index)[1]
    elif made.name not in _NORMS:
        return None
    return made if squares is not None and squares.name in ("sub", "rsub") else None


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

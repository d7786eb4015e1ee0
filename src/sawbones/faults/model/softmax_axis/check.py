"""A softmax over another dimension than the one that is summed over afterwards

## What it sees
On deep steps, every softmax whose result weighs other values, and the dimension that the following
product or sum runs over: the weights have to add up to 1 along it. Fires from step 0 when the
softmax was taken along another dimension, when it was taken over a dimension of size 1 (its result
is 1 everywhere), or when log-probabilities that enter a loss were normalised over another dimension
than the classes. Also when the loss is given, on every deep step, the softmax over a dimension of
size 1: the answer is the constant 1 (0 after log_softmax) and no gradient comes through it. Likely
where a softmax inside of the model runs over the examples of the batch, and the influence map shows
that an example's answer depends on the inputs of the others.

## Why it matters
The weighted mean is no mean: its size depends on the other queries or on the batch, and the weights
can't single anything out.

## Looks like
It trains, only worse: attention maps are blurred, outputs change with sequence length or with the
other examples.

## Example
    weights = torch.softmax(scores, dim=-2)
    context = weights @ values

## Use instead
    weights = torch.softmax(scores, dim=-1)
    context = weights @ values

## Confirm it
The rows of weights as they entered the product, and their sums, are the proof.

## False alarms
Slot attention takes the softmax over the slots on purpose and divides by the sum over keys
afterwards; weights that are divided again are left alone. What is summed may be distributions
itself: components of a mixture of softmaxes, topics, rows of a transition matrix. They are weighed
with shares (numbers between 0 and 1), or the sum is used along the softmax's own dimension later
on, as after heads were mixed. Elements that are shared out over slots, clusters or experts add up
to 1 over a dimension that a layer made, and are summed over the elements: pooling of that kind is
silent too. Scores laid out as (keys, queries) and
transposed before the product are followed through the transposition. A length of 1 in a single
batch does not count: it has to be so on every deep step. Contrastive scores of all examples against
all, and the nodes of a graph, are normalised over dimension 0 on purpose and stay silent.

## References
`F.softmax` without dim, or with dim=1 copied from a 2-D example into a 4-D one, is a frequent
question of the PyTorch forum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.evidence.limits import model as limits
from sawbones.evidence.mixing import is_graph, mixing
from sawbones.schema import DeepStep, Finding, Fix, Op, Run, Site
from sawbones.stats.loss_calls import carrying
from sawbones.stats.weighted_sums import NEW, Weighing, is_learned_axis, users, weighings
from sawbones.trace.graph import StepGraph
from sawbones.trace.locate import locate

NEEDS = ("ops",)
EXPLAINS = (
    "model.causal-leak",
    "model.cross-sample-leak",
    "optimizer.lr-too-low",
    "model.attention-scale",
    "model.vanishing-gradients",
    "loss.wrong-loss",
    "evaluation.collapsed-prediction",
)
EXPERIMENT = None
_SOFTMAX = ("softmax", "log_softmax")


def check(run: Run) -> Iterator[Finding]:
    found: list[tuple[DeepStep, Op, str, int]] = []
    looked: Counter[Site] = Counter()
    for deep in run.deep:
        graph = StepGraph(deep)
        for op in graph.ops:
            if op.name not in _SOFTMAX or not op.inputs or not op.outputs or op.site is None:
                continue
            axis = _axis(op)
            if axis is None or not op.inputs[0].requires_grad:
                continue
            looked[op.site] += 1
            wrong = _wrong(graph, op, axis)
            if wrong is not None:
                found.append((deep, op, *wrong))
    wrong_at = Counter(op.site for _, op, _, _ in found)
    always = [one for one in found if one[1].site and wrong_at[one[1].site] == looked[one[1].site]]
    into_loss = list(_in_the_loss(run))
    of_one = _constant(run)
    if of_one is not None:
        yield of_one
        return
    if not always and not into_loss:
        over_batch = _over_the_batch(run)
        if over_batch is not None:
            yield over_batch
            return
    if not looked and not into_loss:
        raise NothingToJudge("no softmax was taken of something learned")
    for deep, op, text, expected in (always or into_loss)[:1]:
        # A softmax module is told its dimension where it is made.
        own = [m for m in run.modules if m.path == op.module and m.cls in ("Softmax", "LogSoftmax")]
        yield finding(
            "Softmax is taken over the wrong dimension",
            locate(*(m.built for m in own[:1]), op),
            (
                exact(
                    text,
                    _axis(op) or 0,
                    expected=expected,
                    signal="ops",
                    steps=(deep.step,),
                ),
            ),
            Fix(
                "Take the softmax along the dimension that the weights are summed over next "
                "(the keys, or the classes)."
            ),
        )


def _constant(run: Run) -> Finding | None:
    """The loss of every deep step is given a softmax over a dimension of size 1."""
    losses = carrying(run)
    made = [(seen, op) for seen in losses if (op := seen.maker()) is not None and _of_one(op)]
    if not made or len(made) < len(losses):
        return None
    op = made[0][1]
    shape, constant = op.outputs[0].shape, "0" if op.name == "log_softmax" else "1"
    own = [m for m in run.modules if m.path == op.module and m.cls in ("Softmax", "LogSoftmax")]
    return finding(
        f"Softmax over a dimension of size 1: every answer is the constant {constant}",
        locate(*(m.built for m in own[:1]), op),
        (
            exact(
                f"{op.name} of {shape} over dimension {_axis(op)}, which has size 1, enters the "
                f"loss: its value is {constant} and its gradient 0 whatever the model computes",
                1,
                expected=2,
                signal="ops",
                steps=[s.deep.step for s, _ in made[:5]],
            ),
        ),
        Fix(
            "One score per sample needs no softmax: give the raw score to BCEWithLogitsLoss (or its "
            "sigmoid to BCELoss), or make one output per class."
        ),
    )


def _over_the_batch(run: Run) -> Finding | None:
    """A softmax inside of the model along the dimension that holds the examples."""
    for deep in run.deep[:4]:
        for item in mixing(run, deep):
            batch = item.source_shape[item.batch_dim]
            if item.batch_dim != 0 or is_graph(deep, batch):
                continue
            for op in deep.ops:
                if op.name not in _SOFTMAX or op.args.get("no_grad") or not op.inputs:
                    continue
                value = op.inputs[0]
                several = len(value.shape) >= 2 and value.shape[1] > 1
                whose = value.requires_grad and _axis(op) == 0 and value.shape[0] == batch
                if not several or not whose or value.shape.count(batch) > 1:
                    continue
                own = [m for m in run.modules if m.path == op.module and "Softmax" in m.cls]
                return finding(
                    "Softmax is taken over the examples of the batch",
                    locate(*(m.built for m in own[:1]), op),
                    (
                        exact(
                            f"{op.name} of {value.shape} over dimension 0, which holds the "
                            f"{batch} examples: {100 * (item.other_examples or 0):.2g} % of an "
                            "example's dependence is on the inputs of other examples",
                            item.other_examples or 0,
                            within=limits.OTHER_EXAMPLES.value,
                            signal="influence",
                            steps=(deep.step,),
                        ),
                    ),
                    Fix("Take the softmax along the classes or features of each example: dim=-1."),
                    at_most="likely",
                )
    return None


def _of_one(op: Op) -> bool:
    if op.name not in _SOFTMAX or not op.inputs or not op.outputs:
        return False
    axis, value = _axis(op), op.inputs[0]
    return axis is not None and value.requires_grad and value.shape[axis] == 1


def _axis(op: Op) -> int | None:
    dim, rank = op.args.get("dim"), len(op.inputs[0].shape)
    if dim is None and "_stacklevel" in op.args and rank:
        # functional.softmax may be called without dim: torch takes the first or the second
        return 0 if rank in (1, 3) else 1
    return dim % rank if isinstance(dim, int) and rank else None


def _wrong(graph: StepGraph, op: Op, axis: int) -> tuple[str, int] | None:
    """What is wrong, and the dimension that it should be."""
    shape = op.outputs[0].shape
    own = list(range(len(shape)))
    if any(user.name in ("div", "div_") for user, *_ in users(graph, op.outputs[0], own, op.index)):
        return None
    found = list(weighings(graph, op.outputs[0], own, op.index))
    for use in found:
        if use.summed in (NEW, axis) or shape[use.summed] <= 1:
            continue
        if shape[axis] == 1:
            text = (
                f"softmax of {shape} over dimension {axis}, which has size 1: every weight is "
                f"1, and {shape[use.summed]} are summed"
            )
        elif _is_a_distribution(graph, op, axis, found, use):
            continue
        else:
            text = (
                f"softmax of {shape} over dimension {axis}, and {use.user.name} sums over dimension "
                f"{use.summed}: the weights that are summed do not add up to 1"
            )
        return text, use.summed
    return None


def _is_a_distribution(
    graph: StepGraph, op: Op, axis: int, found: list[Weighing], use: Weighing
) -> bool:
    """The softmax is not what weighs here: it is what is mixed, or shares every element out over
    slots.
    """
    by = use.other
    low, high = (by.min, by.max) if by is not None else (None, None)
    if low is not None and high is not None and low >= 0 and limits.LARGEST_SHARE.kept_by(high):
        return True  # a mixture of distributions, weighed by shares
    if is_learned_axis(graph, op.inputs[0], axis, op.index):
        return True
    later = (w for f in found for w in weighings(graph, f.result, f.order, f.user.index))
    return any(w.summed == axis for w in (*found, *later))


def _in_the_loss(run: Run) -> Iterator[tuple[DeepStep, Op, str, int]]:
    for seen in carrying(run):
        op = StepGraph(seen.deep, with_no_grad=True).maker(seen.call.input, seen.call.op)
        classes = seen.facts.class_dim
        if op is None or op.name not in _SOFTMAX or not op.inputs or not isinstance(classes, int):
            continue
        axis, shape = _axis(op), op.inputs[0].shape
        if axis in (None, classes) or shape[classes] < 2 or not seen.facts.target_is_index:
            continue
        text = (
            f"scores {shape} are normalised over dimension {axis}; the {shape[classes]} "
            f"classes lie in dimension {classes}"
        )
        yield seen.deep, op, text, classes

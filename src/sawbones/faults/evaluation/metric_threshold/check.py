"""A metric that reads scores the wrong way: logits cut as if they were probabilities, the wrong axis, labels of another coding

## What it sees
The operators that evaluations apply to the model's outputs, with the range of the values that went
in. Fires when scores that are trained as logits are compared with a number inside (0, 1) or rounded
although they leave [0, 1], when probabilities are cut at zero, when a sigmoid is applied to outputs
that are probabilities already and the result is cut at 0.5, when the largest output is taken along
an axis that is not the class axis, along one of length 1 (it is always 0) or over the whole batch
at once, when class numbers are compared with targets of another numbering, when (N, 1) guesses meet
(N,) labels so that N x N pairs are averaged, or when real outputs are asked to equal real targets.
Also when an evaluation is right only under another name of each class (read off half of its rows,
judged on the other half) while another evaluation of the same model is right as it is: a table of
classes that was made anew for other rows.

## Why it matters
Training is fine and its score is wrong: good models are thrown away, and bad ones kept.

## Looks like
A loss that falls while accuracy, precision or recall stay strangely low, or the positive rate far
from that of the targets.

## Example
    criterion = torch.nn.BCEWithLogitsLoss()
    predicted = (model(x) > 0.5).float()

## Use instead
    criterion = torch.nn.BCEWithLogitsLoss()
    predicted = (model(x) > 0.0).float()

## Confirm it
No experiment: the loss says what the scores are, and the values that were cut are known.

## False alarms
A regression output may be cut anywhere: only outputs that a logit loss trains count. Probabilities
never leave [0, 1]: what is no score of a sample, such as a count in a curve that a library draws,
does, and a range that is asked of all scores at once (are they probabilities?) predicts nothing. A
cut far from 0.5 on logits may have been tuned and stays silent, and so does one inside (0, 1) when
the scores have stayed in [0, 1]. Pairs that are meant to meet are outputs with outputs, or are
reduced along one axis; a batch of one sample may well be asked for its one largest output. A model that
confuses classes has no other names: several of its answers share one.

## References
The PyTorch documentation of BCEWithLogitsLoss; a question asked on its forum every month.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from sawbones.evidence import NothingToJudge, counted, exact, finding
from sawbones.evidence import rescoring as scores
from sawbones.evidence.limits import evaluation as limits
from sawbones.schema import Event, Finding, Fix, Run
from sawbones.schema.evaluation import Met, Node
from sawbones.schema.populations import RecodedLabels
from sawbones.stats.comparisons import (
    asked_of_all,
    equal_reals,
    every_pair,
    largest_of_all,
    largest_of_one,
)
from sawbones.stats.evaluations import CASTS, made_by, train_losses_called
from sawbones.trace.locate import locate

NEEDS = ("events", "validation", "evaluation")
USES = ("populations",)
EXPLAINS = ("evaluation.collapsed-prediction",)
EXPERIMENT = None
CUTS = ("gt", "ge", "lt", "le")
ROUNDS = ("round", "round_")
LARGEST = ("argmax", "max")
LOGITS = {"binary_cross_entropy_with_logits", "multilabel_soft_margin_loss", "soft_margin_loss"}
KEEPS_SCORES = (
    *CASTS,
    "__getitem__",
    "cat",
    "stack",
    "unsqueeze",
    "select",
    "transpose",
    "permute",
    "index_select",
    "numpy",
    "atleast_1d",
    "contiguous",
)
TURNS = ("transpose", "permute", "movedim", "moveaxis")
MIN_TARGETS = 20  # compared, so that their lowest and highest are those of the coding

_Said = tuple[str, str, Fix, float, float]  # title, text, fix, measured, expected


def check(run: Run) -> Iterator[Finding]:
    recoded = run.populations.recoded
    if recoded is not None:
        yield _renamed(recoded)
        return
    trained = train_losses_called(run)
    everything = run.evaluation.nodes
    judged = (*CUTS, *ROUNDS, *LARGEST, "eq")
    seen = any(n.op in judged and "output" in n.roles for n in everything)
    if not seen and not scores.is_scored(run):
        raise NothingToJudge("no evaluation cuts, rounds or compares the outputs of the model")
    for node in everything:
        said = (
            _cut(node, everything, trained)
            or _rounded(node, everything, trained)
            or _largest(run, node, everything)
            or _axis(run, node, everything)
            or _coding(node, everything)
            or _paired(node, everything)
            or _equal(node, everything)
        )
        if said is not None:
            title, text, fix, value, expected = said
            reading = exact(
                text, value, expected=expected, signal="evaluation", steps=node.steps[:5]
            )
            yield finding(title, locate(node), (reading,), fix)
            return
    yield from _printed(run)


def _renamed(told: RecodedLabels) -> Finding:
    some = ", ".join(f"{answer} stands for {name}" for answer, name in told.names[:4])
    reading = counted(
        f"{told.score:.1%} of {told.rows} answers are right, and {told.renamed:.1%} once the "
        f"classes are renamed ({some}); another evaluation of this model is right in "
        f"{told.reference:.1%} as it is",
        round(told.renamed * told.judged),
        told.judged,
        limits.RIGHT_UNDER_OTHER_NAMES,
        expected=told.score,
        signal="populations",
    )
    return finding(
        "An evaluation numbers its classes otherwise than training",
        told.sites,
        (reading,),
        Fix("Number the classes once, from the training rows, and use that table everywhere."),
    )


_MISTAKES = {
    scores.PAIRS: (
        "that of all pairs of guesses and labels",
        Fix("Compare guesses and labels sample by sample: give both the same shape first."),
    ),
    scores.BY_COLUMN: (
        "that of the largest output down the samples of each batch",
        Fix("Take the largest output along the class axis of each sample."),
    ),
    scores.FIRST_CLASS: (
        "that of answering 0 to everything",
        Fix("Cut the one score of each sample: logits > 0, or probabilities > 0.5."),
    ),
    scores.WHOLE_PART: (
        "that of the whole part of each score",
        Fix("Cut the score instead of int(): logits > 0, or probabilities > 0.5."),
    ),
    scores.OTHER_CUT: (
        "that of cutting the scores where their loss does not",
        Fix("Cut logits at 0 and probabilities at 0.5."),
    ),
}


def _printed(run: Run) -> Iterator[Finding]:
    """However it was computed: what is printed is the score of a mistake, at every evaluation."""
    found = scores.misscored(run, tuple(_MISTAKES))
    if found is None:
        return
    what, fix = _MISTAKES[found.mistake]
    reading = exact(
        f"printed is {found.printed:.6g}, {what}; {found.right:.6g} of {found.rows} answers are "
        f"right, and so it is at {len(found.steps)} evaluations",
        found.printed,
        expected=found.right,
        signal="evaluation",
        steps=found.steps[:5],
    )
    title = "The printed score is not the share of right answers"
    yield finding(title, locate(found), (reading,), fix, at_most="likely")


def _scores(node: Node, ops: Sequence[str]) -> Met | None:
    """The outputs alone, where one of these operators takes them and their range is known."""
    known = node.op in ops and node.roles == ("output",) and node.given
    return node.given[0] if known and node.given[0].num else None


def _outside(given: Met) -> float:
    """How far values leave [0, 1]."""
    return max(-given.min, given.max - 1)


def _cut(node: Node, everything: Sequence[Node], trained: set[str]) -> _Said | None:
    given = _scores(node, CUTS)
    numbers = [a for a in node.args if isinstance(a, (int, float)) and not isinstance(a, bool)]
    if given is None or len(numbers) != 1:
        return None
    cut, low, high = float(numbers[0]), given.min, given.max
    # A library works on losses, counts and scores in one line. What is made of single numbers is
    # none of the scores, nor is a single number that was made of many.
    single = not any(given.shapes)
    makers = [
        m
        for m in made_by(everything, node, KEEPS_SCORES)
        if single or any(s for g in m.given for s in g.shapes or ((1,),))
    ]
    bounded = [
        m
        for m in makers
        if m.op == "sigmoid"
        and not made_by(everything, m, KEEPS_SCORES)
        and single == all(not any(g.shapes) for g in m.given)
        and _outside(given) <= 0
    ]
    if (
        not makers
        and trained & LOGITS
        and limits.CUT_AS_PROBABILITY.kept_by(max(cut, 1 - cut))
        and limits.OUTSIDE_UNIT.passed_by(_outside(given))
    ):
        probability = 1 / (1 + math.exp(-cut))
        return (
            "Logits are cut as if they were probabilities",
            f"the outputs range from {low:.3g} to {high:.3g} and are cut at {cut:g}, a "
            f"probability of {probability:.2f}",
            Fix("Compare the logits with 0.0, or pass them through a sigmoid first."),
            cut,
            0,
        )
    if bounded and cut == 0 and not asked_of_all(node, everything, KEEPS_SCORES):
        text = f"probabilities between {low:.3g} and {high:.3g} are compared with 0"
        return _all_positive(text, "0.5")
    if "binary_cross_entropy" in trained and limits.CUT_IN_THE_MIDDLE.kept_by(max(cut, 1 - cut)):
        for inner in (m.given[0] for m in bounded if m.given and m.given[0].num):
            if inner.min >= 0 and inner.max <= 1 and low >= 1 / 2:
                text = (
                    f"a sigmoid of outputs that are probabilities already ({inner.min:.3g} to "
                    f"{inner.max:.3g}) is never below 0.5"
                )
                return _all_positive(text, "the outputs themselves")
    return None


def _all_positive(text: str, instead: str) -> _Said:
    """The cut is one at a probability of 0, where it has to be at one half."""
    title = "Probabilities are cut where all of them are positive"
    return title, text, Fix(f"Compare with {instead}."), 0, 1 / 2


def _rounded(node: Node, everything: Sequence[Node], trained: set[str]) -> _Said | None:
    given = _scores(node, ROUNDS)
    if (
        given is None
        or not trained & LOGITS
        or made_by(everything, node, KEEPS_SCORES)
        or not _is_compared(node, everything)
        or not limits.ROUNDED_OUTSIDE.passed_by(_outside(given))
    ):
        return None
    return (
        "Logits are rounded as if they were probabilities",
        f"the outputs range from {given.min:.3g} to {given.max:.3g}; rounded they are "
        "compared with classes",
        Fix("Round the sigmoid of the logits, or compare the logits with 0.0."),
        _outside(given),
        0,
    )


def _is_compared(node: Node, everything: Sequence[Node]) -> bool:
    return any(n.op == "eq" and node in made_by(everything, n, KEEPS_SCORES) for n in everything)


def _largest(run: Run, node: Node, everything: Sequence[Node]) -> _Said | None:
    """The largest of a single output, or one for a whole batch."""
    if node.op not in LARGEST or node.roles[:1] != ("output",):
        return None
    axis = _axis_of(node.args)
    shape = largest_of_one(node, axis)
    if shape is not None and (node.op == "argmax" or _is_compared(node, everything)):
        return (
            "The predicted class is the largest of one output: always 0",
            f"outputs of shape {shape} have one value on axis {axis}, and its place is taken for "
            "the class",
            Fix("Cut the one score instead: logits > 0, or probabilities > 0.5."),
            1,
            2,
        )
    shape = largest_of_all(node, axis)
    if shape is not None and (_is_compared(node, everything) or _classes(run) == {shape[1]}):
        return (
            "One single class is predicted for a whole batch",
            f"the largest of all {shape[0] * shape[1]} outputs of shape {shape} is taken, one "
            f"place for {shape[0]} samples",
            Fix("Take it along the class axis: argmax(dim=1)."),
            1,
            shape[0],
        )
    return None


def _paired(node: Node, everything: Sequence[Node]) -> _Said | None:
    pairs = every_pair(node, everything)
    if pairs is None:
        return None
    return (
        "Every guess is compared with the labels of all samples",
        f"guesses {pairs.guesses} meet labels {pairs.labels}: {pairs.rows * pairs.rows} pairs are "
        f"averaged where {pairs.rows} are meant",
        Fix("Give both the same shape first: squeeze the guesses, or unsqueeze the labels."),
        pairs.rows * pairs.rows,
        pairs.rows,
    )


def _equal(node: Node, everything: Sequence[Node]) -> _Said | None:
    found = equal_reals(node, everything)
    if found is None:
        return None
    share, number = found
    return (
        "Real outputs are asked to equal real targets",
        f"{share:.1%} of {number} comparisons are equal: the targets are no classes, and a real "
        "number meets another by accident only",
        Fix("Score a regression by its error (mean absolute or squared), or by a tolerance."),
        0,
        1,
    )


def _axis(run: Run, node: Node, everything: Sequence[Node]) -> _Said | None:
    if node.op not in LARGEST or node.roles[:1] != ("output",) or not node.given:
        return None
    axis = _axis_of(node.args)
    shapes = [s for s in node.given[0].shapes if len(s) >= 2]
    classes = _classes(run)
    if axis is None or not shapes or len(classes) != 1 or not _is_compared(node, everything):
        return None
    if made_by(everything, node, (*KEEPS_SCORES, "softmax", "log_softmax")):
        return None
    (number,) = classes
    shape = shapes[0]
    right = _class_axis(run, shape, number)
    used = axis % len(shape)
    if right is None or used == right or any(len(other) != len(shape) for other in shapes):
        return None
    return (
        "The predicted class is taken along the wrong axis",
        f"outputs of shape {tuple(shape)} have {number} classes on axis {right}; axis {axis} is "
        "used",
        Fix(f"Take it along dim={right - len(shape)}, the class axis."),
        used,
        right,
    )


def _classes(run: Run) -> set[int]:
    """How many classes the losses of training tell apart."""
    return {int(e.data["input_shape"][1]) for e in _class_losses(run) if _dims(e) >= 2}


def _class_losses(run: Run) -> list[Event]:
    names = ("cross_entropy", "nll_loss")
    return [e for e in run.of_kind("loss") if e.phase == "train" and e.data.get("fn") in names]


def _dims(loss: Event) -> int:
    return len(loss.data.get("input_shape") or ())


def _class_axis(run: Run, shape: Sequence[int], number: int) -> int | None:
    """The axis as long as there are classes; of several, the last when training flattens the others
    and turns nothing around.
    """
    where = [i for i, n in enumerate(shape) if n == number]
    if len(where) == 1:
        return where[0]
    flat = all(_dims(e) == 2 for e in _class_losses(run))
    turned = any(
        op.name in TURNS and not op.module and op.phase == "forward"
        for d in run.deep
        for op in d.ops
    )
    last = len(shape) - 1
    return last if len(shape) > 2 and last in where and flat and run.deep and not turned else None


def _axis_of(args: Sequence[Any]) -> int | None:
    for value in args:
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, str) and value.startswith(("dim=", "axis=")):
            return int(value.split("=")[1])
    return None


def _coding(node: Node, everything: Sequence[Node]) -> _Said | None:
    """Predictions from 0 to C-1 against targets from 1 to C, or 0/1 against -1/1."""
    if node.op != "eq" or node.roles[:1] != ("output",) or len(node.given) != 2:
        return None
    predicted, target = node.given
    if not all(g.num for g in node.given) or target.num < MIN_TARGETS:
        return None
    makers = made_by(everything, node, KEEPS_SCORES)
    coding = (target.min, target.max)
    if coding == (-1, 1) and predicted.min >= 0 and any(m.op in CUTS for m in makers):
        return (
            "Predictions and targets are coded differently",
            "predictions are 0 or 1, targets are -1 or 1: no negative can ever be right",
            Fix("Compare 2 * predicted - 1, or targets > 0."),
            0,
            -1,
        )
    sources = [m for m in makers if m.op == "argmax" and m.given and m.given[0].shapes]
    axis = _axis_of(sources[0].args) if len(sources) == 1 else None
    if axis is None:
        return None
    classes = sources[0].given[0].shapes[0][axis]
    if classes > 1 and coding == (1, classes) and predicted.min == 0:
        return (
            "Predictions and targets are numbered differently",
            f"predictions lie in 0 to {classes - 1}, targets in 1 to {classes}",
            Fix("Subtract 1 from the targets."),
            0,
            1,
        )
    return None

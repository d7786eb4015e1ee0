"""A metric that reads scores the wrong way: logits cut as if they were probabilities, the wrong axis, labels of another coding

## What it sees
The operators that evaluations apply to the model's outputs, with the range of the values that went
in. Fires when scores that are trained as logits are compared with a number inside (0, 1) or rounded
although they leave [0, 1], when probabilities are cut at zero, when a sigmoid is applied to outputs
that are probabilities already and the result is cut at 0.5, when the largest output is taken along
an axis that is not the class axis, or when class numbers are compared with targets of another
numbering.

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
never leave [0, 1]. A cut far from 0.5 on logits may have been tuned and stays silent, and so does
one inside (0, 1) when the scores have stayed in [0, 1].

## References
The PyTorch documentation of BCEWithLogitsLoss; a question asked on its forum every month.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.evaluations import CASTS, EQUALS, Node, made_by, nodes, train_losses_called

NEEDS = ("events", "validation", "evaluation")
EXPLAINS = ("evaluation.collapsed-prediction",)
EXPERIMENT = None
CUTS = (
    "gt",
    "ge",
    "lt",
    "le",
    "__gt__",
    "__ge__",
    "__lt__",
    "__le__",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
)
LOGITS = ("binary_cross_entropy_with_logits", "multilabel_soft_margin_loss", "soft_margin_loss")
KEEPS_SCORES = (
    *CASTS,
    "__getitem__",
    "cat",
    "stack",
    "unsqueeze",
    "select",
    "transpose",
    "permute",
    "concat",
    "index_select",
    "numpy",
    "atleast_1d",
    "contiguous",
)


def check(run: Run) -> Iterator[Finding]:
    trained = train_losses_called(run)
    everything = nodes(run)
    for node in everything:
        said = (
            _cut(node, everything, trained)
            or _rounded(node, everything, trained)
            or _axis(run, node, everything)
            or _coding(node, everything)
        )
        if said is not None:
            title, text, fix, value, expected = said
            places: tuple[Site, ...] = (node.site,) if node.site is not None else ()
            evidence = Evidence(text, "evaluation", node.steps[:5], value, expected)
            yield Finding(
                "evaluation.metric-threshold", "proven", 0.93, title, places, (evidence,), fix
            )
            return


_Said = tuple[str, str, Fix, float, float]


def _cut(node: Node, everything: Sequence[Node], trained: set[str]) -> _Said | None:
    if (
        node.op not in CUTS
        or node.roles != ("output",)
        or not node.given
        or "min" not in node.given[0]
    ):
        return None
    numbers = [a for a in node.args if isinstance(a, (int, float)) and not isinstance(a, bool)]
    if len(numbers) != 1:
        return None
    cut, low, high = float(numbers[0]), float(node.given[0]["min"]), float(node.given[0]["max"])
    # A library works on losses and scores in one line: what is made of single numbers is none of
    # the scores.
    makers = [
        m
        for m in made_by(everything, node, KEEPS_SCORES)
        if any(s for g in m.given for s in g.get("shapes", ((1,),)))
    ]
    raw = not makers
    bounded = [m for m in makers if m.op == "sigmoid" and not made_by(everything, m, KEEPS_SCORES)]
    if raw and trained & set(LOGITS) and 0.2 <= cut <= 0.8 and (low < -0.05 or high > 1.05):
        return (
            "Logits are cut as if they were probabilities",
            (
                f"the outputs range from {low:.3g} to {high:.3g} and are cut at {cut:g}, a "
                f"probability of {_sigmoid(cut):.2f}"
            ),
            Fix(
                "Compare the logits with 0.0, or pass them through a sigmoid first.",
                replace=(f"{numbers[0]}", "0.0"),
            ),
            cut,
            0.0,
        )
    if bounded and cut == 0.0:
        return _all_positive(
            f"probabilities between {low:.3g} and {high:.3g} are compared with 0", "0.5", cut
        )
    twice = [
        m for m in bounded if "binary_cross_entropy" in trained and _unit(m) and 0.4 <= cut <= 0.6
    ]
    if twice:
        given = twice[0].given[0]
        text = (
            f"a sigmoid of outputs that are probabilities already ({given['min']:.3g} to "
            f"{given['max']:.3g}) is never below 0.5"
        )
        return _all_positive(text, "the outputs themselves", cut)
    return None


def _all_positive(text: str, instead: str, cut: float) -> _Said:
    return (
        "Probabilities are cut where all of them are positive",
        text,
        Fix(f"Compare with {instead}."),
        cut,
        0.5,
    )


def _unit(node: Node) -> bool:
    return (
        bool(node.given)
        and node.given[0].get("min", -1.0) >= 0
        and node.given[0].get("max", 2.0) <= 1
    )


def _rounded(node: Node, everything: Sequence[Node], trained: set[str]) -> _Said | None:
    if (
        node.op not in ("round", "round_")
        or node.roles != ("output",)
        or not node.given
        or "min" not in node.given[0]
    ):
        return None
    low, high = float(node.given[0]["min"]), float(node.given[0]["max"])
    compared = any(
        n.op in EQUALS and node in made_by(everything, n, KEEPS_SCORES) for n in everything
    )
    if (
        not (trained & set(LOGITS))
        or made_by(everything, node, KEEPS_SCORES)
        or not compared
        or (low >= -0.6 and high <= 1.6)
    ):
        return None
    return (
        "Logits are rounded as if they were probabilities",
        f"the outputs range from {low:.3g} to {high:.3g}; rounded they are compared with classes",
        Fix("Round the sigmoid of the logits, or compare the logits with 0.0."),
        high,
        1.0,
    )


def _axis(run: Run, node: Node, everything: Sequence[Node]) -> _Said | None:
    if (
        node.op not in ("argmax", "max")
        or not node.roles
        or node.roles[0] != "output"
        or not node.given
    ):
        return None
    axis = _axis_of(node.args)
    shapes = [s for s in node.given[0].get("shapes", ()) if len(s) >= 2]
    compared = any(
        n.op in EQUALS and node in made_by(everything, n, KEEPS_SCORES) for n in everything
    )
    if (
        axis is None
        or not shapes
        or not compared
        or made_by(everything, node, (*KEEPS_SCORES, "softmax", "log_softmax"))
    ):
        return None
    classes = {
        int(e.data["input_shape"][1])
        for e in run.of_kind("loss")
        if e.phase == "train"
        and e.data.get("fn") in ("cross_entropy", "nll_loss")
        and len(e.data.get("input_shape") or ()) >= 2
    }
    if len(classes) != 1:
        return None
    number = classes.pop()
    shape = shapes[0]
    right = _class_axis(run, shape, number)
    if (
        right is None
        or any(len(other) != len(shape) for other in shapes)
        or axis % len(shape) == right
    ):
        return None
    return (
        "The predicted class is taken along the wrong axis",
        (
            f"outputs of shape {tuple(shape)} have {number} classes on axis {right}; axis "
            f"{axis} is used"
        ),
        Fix(f"Take it along dim={right - len(shape)}, the class axis."),
        float(axis % len(shape)),
        float(right),
    )


def _class_axis(run: Run, shape: Sequence[int], number: int) -> int | None:
    """The axis as long as there are classes; of several, the last when training flattens the others
    and turns nothing around.
    """
    where = [i for i, n in enumerate(shape) if n == number]
    if len(where) == 1:
        return where[0]
    flat = all(
        len(e.data.get("input_shape") or ()) == 2
        for e in run.of_kind("loss")
        if e.phase == "train" and e.data.get("fn") in ("cross_entropy", "nll_loss")
    )
    turns = ("transpose", "permute", "movedim", "swapaxes", "swapdims", "moveaxis")
    turned = any(
        op.name in turns and not op.module and op.phase == "forward"
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
    if (
        node.op not in EQUALS
        or len(node.given) != 2
        or node.roles[0] != "output"
        or any("min" not in g for g in node.given)
    ):
        return None
    predicted, target = node.given
    makers = made_by(everything, node, KEEPS_SCORES)
    if target["num"] < 20 or target["max"] == target["min"]:
        return None
    if (
        any(m.op in CUTS for m in makers)
        and predicted["min"] >= 0
        and (target["min"], target["max"]) == (-1.0, 1.0)
    ):
        text = "predictions are 0 or 1, targets are -1 or 1: no negative can ever be right"
        return (
            "Predictions and targets are coded differently",
            text,
            Fix("Compare 2 * predicted - 1, or targets > 0."),
            0.0,
            -1.0,
        )
    sources = [m for m in makers if m.op == "argmax" and m.given and m.given[0].get("shapes")]
    if len(sources) != 1 or (axis := _axis_of(sources[0].args)) is None:
        return None
    classes = int(sources[0].given[0]["shapes"][0][axis])
    if target["min"] == 1 and target["max"] == classes and predicted["min"] == 0:
        text = f"predictions lie in 0 to {classes - 1}, targets in 1 to {classes}"
        return (
            "Predictions and targets are numbered differently",
            text,
            Fix("Subtract 1 from the targets."),
            0.0,
            1.0,
        )
    return None


def _sigmoid(x: float) -> float:
    return float(1.0 / (1.0 + 2.718281828459045**-x))

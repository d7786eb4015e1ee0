"""A metric that averages over padding

## What it sees
Comparisons of predictions with targets in evaluations, position by position, with the share that
lies on padding (-100, or the one value that fills the ends of rows), and what becomes of the
result. Fires when at least 5 % of the positions are padding and the comparison is averaged whole,
with no mask and no selection; also when training ignores a class that the validation loss counts.
Of real numbers, padding is where predictions equal targets exactly up to the end of the row and
hardly anywhere else.

## Why it matters
Padding is easy (or impossible) to predict, so the score is too high (or too low), and changes with
the batch size and the lengths.

## Looks like
Token accuracy that jumps with the batch size, or is high although the texts are bad.

## Example
    accuracy = (logits.argmax(-1) == labels).float().mean()

## Use instead
    real = labels != pad_id
    accuracy = (logits.argmax(-1) == labels)[real].float().mean()

## Confirm it
No experiment: the same comparison is counted again without the padded positions.

## False alarms
A sum over the comparison may be divided by the number of real positions: it counts only when the
size of the whole targets is asked for beside it and no target is told apart. Multiplied, selected
or joined with a mask, it stays silent. Rows that end in one value by chance count only when
training treats that value as padding and the lengths differ.

## References
Post, "A call for clarity in reporting BLEU scores" (2018), on metrics that depend on preprocessing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sawbones.schema import Event, Evidence, Finding, Fix, Run
from sawbones.stats.evaluations import CASTS, EQUALS, Node, consumers, nodes

NEEDS = ("events", "validation", "evaluation")
EXPLAINS = ("evaluation.metric-averaging",)
EXPERIMENT = None
MIN_SHARE = 0.05
PICKS = ("gather", "take_along_dim")
MASKS = (
    "__getitem__",
    "mul",
    "__mul__",
    "__rmul__",
    "mul_",
    "__and__",
    "logical_and",
    "bitwise_and",
    "masked_select",
    "where",
    "masked_fill",
    "masked_fill_",
    "and_",
    "__iand__",
    "__imul__",
    "dot",
    "__or__",
    "logical_or",
    "bitwise_or",
    "stack",
    "cat",
)
TELLS_APART = (
    "ne",
    "__ne__",
    "gt",
    "__gt__",
    "ge",
    "__ge__",
    "eq",
    "__eq__",
    "lt",
    "__lt__",
    "isin",
    "logical_not",
)


def check(run: Run) -> Iterator[Finding]:
    everything = nodes(run)
    for node in everything:
        finding = _of(run, node, everything) or _of_reals(node, everything)
        if finding is not None:
            yield finding
            return
    finding = _loss(run)
    if finding is not None:
        yield finding


def _of(run: Run, node: Node, everything: Sequence[Node]) -> Finding | None:
    seen = node.padding
    picked = node.op in PICKS  # the score of the wanted token, taken out at every position
    if (
        (node.op not in EQUALS and not picked)
        or not seen
        or not seen["positions"]
        or "output" not in node.roles
    ):
        return None
    share = seen["padded"] / seen["positions"]
    known = _known_padding(run)
    if (
        share < MIN_SHARE
        or share > 0.98
        or len(seen["rows"]) < 3
        or (seen["value"] != -100 and seen["value"] not in known)
    ):
        return None
    after = consumers(everything, node, (*CASTS, "neg", "__neg__", "log", "exp", "clamp"))
    idle = [n for n in after if _masks_nothing(n)]
    after = [
        *(n for n in after if n not in idle),
        *(n for m in idle for n in consumers(everything, m)),
    ]
    averaged = [n for n in after if n.op in ("mean", "nanmean")] or _divided_by_all(
        after, node, everything
    )
    if not averaged or any(n.op in MASKS for n in after):
        return None
    real = seen["positions"] - seen["padded"]
    counted, without = (
        seen["equal"] / seen["positions"],
        (seen["equal"] - seen["equal_padded"]) / max(real, 1),
    )
    if abs(counted - without) < 0.01 and not picked:
        return None
    places = tuple(dict.fromkeys(s for s in (node.site, averaged[0].site) if s is not None))
    right = f"{counted:.3f} of all positions are right, of the real ones {without:.3f}"
    return Finding(
        "evaluation.metric-padding",
        "proven",
        0.93,
        "The metric averages over padding",
        places,
        (
            Evidence(
                f"{share:.0%} of the compared positions are padding ({seen['value']})",
                "evaluation",
                (),
                share,
                0.0,
            ),
            *(() if picked else (Evidence(right, "evaluation", (), counted, without),)),
        ),
        Fix(
            "Average over real positions only: select them, or multiply by the mask and "
            "divide by its sum."
        ),
    )


def _masks_nothing(node: Node) -> bool:
    """A mask is applied that holds nothing but ones."""
    return node.op in (
        "__and__",
        "mul",
        "__mul__",
        "logical_and",
        "bitwise_and",
        "__iand__",
    ) and _all_ones(node.given[1:])


def _all_ones(given: Sequence[Mapping[str, Any]]) -> bool:
    return any(g.get("min") == g.get("max") == 1.0 and g.get("num", 0) > 1 for g in given)


def _of_reals(node: Node, everything: Sequence[Node]) -> Finding | None:
    """An error of real numbers, averaged with the ends of rows where predictions and targets are
    blanked out.
    """
    seen = node.blanks
    if (
        not seen
        or "output" not in node.roles
        or len(seen["rows"]) < 4
        or seen["full_rows"] < 0.9 * seen["batches"]
    ):
        return None
    share, real = seen["padded"] / seen["positions"], seen["positions"] - seen["padded"]
    if share < MIN_SHARE or share > 0.98 or seen["equal_inside"] > 0.01 * real:
        return None
    after = consumers(
        everything, node, (*CASTS, "abs", "square", "pow", "__pow__", "neg", "__neg__")
    )
    at_once = node.op.endswith("_loss") and not any(
        a in ("reduction=sum", "reduction=none") for a in node.args
    )
    averaged = (
        [node]
        if at_once
        else [n for n in after if n.op in ("mean", "nanmean")]
        or _divided_by_all(after, node, everything)
    )
    if not averaged or any(n.op in MASKS for n in after):
        return None
    text = (
        f"{share:.0%} of the positions are blank ends of rows, without error: the mean is "
        f"{1 - share:.2f} of the true one"
    )
    return Finding(
        "evaluation.metric-padding",
        "proven",
        0.92,
        "The metric averages over padding",
        tuple(dict.fromkeys(s for s in (node.site, averaged[0].site) if s is not None)),
        (Evidence(text, "evaluation", (), share, 0.0),),
        Fix(
            "Average over real positions only: select them, or multiply by the mask and "
            "divide by its sum."
        ),
    )


def _divided_by_all(after: Sequence[Node], node: Node, everything: Sequence[Node]) -> list[Node]:
    """A sum whose count is taken of all positions: the size of the targets is asked for, and none
    of them is ever told apart.
    """
    sums = [n for n in after if n.op in ("sum", "count_nonzero")]
    place = node.site
    near = [
        n
        for n in everything
        if place is not None
        and n.site is not None
        and n.site.file == place.file
        and abs(n.site.line - place.line) <= 6
    ]
    told_apart = [n for n in everything if n.op in TELLS_APART and "output" not in n.roles]
    counts = [
        n
        for n in near
        if n.op in ("numel", "nelement") or (n.op == "sum" and _all_ones(n.given[:1]))
    ]
    return sums if sums and counts and not told_apart else []


def _known_padding(run: Run) -> set[int]:
    """Ids that training treats as padding: what its loss ignores, what an embedding declares, what
    fills the ends of the inputs.
    """
    found = {
        int(e.data["ignore_index"])
        for e in run.of_kind("loss")
        if isinstance(e.data.get("ignore_index"), int)
    }
    for deep in run.deep:
        for tokens in deep.tokens:
            found |= {int(i) for i in (tokens.pad_id, tokens.padding_idx) if i is not None}
    return found


def _loss(run: Run) -> Finding | None:
    def ignored(event: Event) -> int:
        value = event.data.get("ignore_index")
        return int(value) if isinstance(value, int) else -100

    calls = [e for e in run.of_kind("loss") if e.data.get("fn") in ("cross_entropy", "nll_loss")]
    trained, judged = (
        [e for e in calls if e.phase == "train"],
        [e for e in calls if e.phase == "eval"],
    )
    ids = {ignored(e) for e in trained}
    if (
        len(ids) != 1
        or not judged
        or (pad := ids.pop()) < 0
        or any(ignored(e) == pad or e.data.get("weight") for e in judged)
    ):
        return None
    if any(e.data.get("reduction") != "mean" for e in judged):
        return None
    counted = [
        c.facts.get("target_ignored_share") or 0.0
        for d in run.deep
        for c in d.losses
        if c.facts.get("ignore_index") == pad
    ]
    share = max(counted, default=0.0)
    if share < MIN_SHARE:
        return None
    places = tuple(e.site for e in judged[:1] if e.site is not None)
    text = (
        f"training ignores target {pad} ({share:.0%} of the positions); the loss of the "
        "evaluation counts it"
    )
    return Finding(
        "evaluation.metric-padding",
        "likely",
        0.9,
        "The validation loss averages over padding",
        places,
        (Evidence(text, "events", (judged[0].step,), share, 0.0),),
        Fix(f"Give the validation loss the same ignore_index={pad}."),
    )

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

from collections.abc import Iterator, Sequence

from sawbones.evidence import NothingToJudge, compared, context, exact, finding
from sawbones.evidence.limits import evaluation as limits
from sawbones.schema import Event, Finding, Fix, Run
from sawbones.schema.evaluation import Met, Node
from sawbones.stats.evaluations import CASTS, consumers
from sawbones.trace.locate import locate

NEEDS = ("events", "validation", "evaluation")
EXPLAINS = ("evaluation.metric-averaging",)
EXPERIMENT = None
MIN_ROWS = 3  # whose padding was counted
MIN_BLANK_ROWS = 4  # whose ends are blank
PICKS = ("gather", "take_along_dim")  # the score of the wanted token, at every position
KEEPS_PLACES = (*CASTS, "neg", "log", "exp", "clamp")
KEEPS_ERRORS = (*CASTS, "abs", "square", "pow", "neg")
MULTIPLIES = ("logical_and", "mul")
MASKS = (
    *MULTIPLIES,
    "__getitem__",
    "mul_",
    "masked_select",
    "where",
    "masked_fill",
    "masked_fill_",
    "and_",
    "dot",
    "logical_or",
    "stack",
    "cat",
)
DISTINGUISHES = ("ne", "gt", "ge", "eq", "lt", "isin", "logical_not")
REAL_ONLY = Fix(
    "Average over real positions only: select them, or multiply by the mask and divide by its sum."
)


def check(run: Run) -> Iterator[Finding]:
    everything = run.evaluation.nodes
    judged = [n for n in everything if "output" in n.roles and (n.padding or n.blanks)]
    losses = [e for e in run.of_kind("loss") if e.data.get("fn") in ("cross_entropy", "nll_loss")]
    if not judged and not any(e.phase == "eval" for e in losses):
        raise NothingToJudge("no evaluation compares outputs with targets position by position")
    found = [
        f
        for node in judged
        for f in (*_of_ids(run, node, everything), *_of_reals(node, everything))
    ]
    yield from found[:1] or _of_losses(run, losses)


def _of_ids(run: Run, node: Node, everything: Sequence[Node]) -> Iterator[Finding]:
    seen = node.padding
    picked = node.op in PICKS
    if (node.op != "eq" and not picked) or not seen or not seen.positions:
        return
    share = seen.padded / seen.positions
    known = seen.value == -100 or seen.value in _known_padding(run)
    if not known or len(seen.rows) < MIN_ROWS or not _is_padding(share):
        return
    after = consumers(everything, node, KEEPS_PLACES)
    idle = [n for n in after if n.op in MULTIPLIES and _all_ones(n.given[1:])]
    after = [n for n in after if n not in idle]
    after += [n for m in idle for n in consumers(everything, m)]
    averaged = _averaged(after, node, everything)
    real = seen.positions - seen.padded
    with_padding = seen.equal / seen.positions
    without = (seen.equal - seen.equal_padded) / max(real, 1)
    changed = limits.SCORE_CHANGED.reached_by(abs(with_padding - without))
    if not averaged or not (changed or picked):
        return
    evidence = [
        exact(
            f"{share:.0%} of the compared positions are padding ({seen.value})",
            share,
            signal="evaluation",
        )
    ]
    if not picked:
        text = f"{with_padding:.3f} of all positions are right, of the real ones {without:.3f}"
        evidence.append(context(text, signal="evaluation", value=with_padding, expected=without))
    yield finding(
        "The metric averages over padding",
        locate(node, averaged[0]),
        evidence,
        REAL_ONLY,
    )


def _is_padding(share: float) -> bool:
    return limits.PADDED_METRIC.reached_by(share) and limits.ALL_PADDING.kept_by(share)


def _all_ones(given: Sequence[Met]) -> bool:
    """A mask that holds nothing but ones."""
    return any(g.min == g.max == 1 and g.num > 1 for g in given)


def _of_reals(node: Node, everything: Sequence[Node]) -> Iterator[Finding]:
    """An error of real numbers, averaged with the ends of rows where predictions and targets are
    blanked out.
    """
    seen = node.blanks
    if not seen or len(seen.rows) < MIN_BLANK_ROWS:
        return
    share, real = seen.padded / seen.positions, seen.positions - seen.padded
    if (
        not limits.BLANK_ENDS.reached_by(seen.full_rows / max(seen.batches, 1))
        or not _is_padding(share)
        or not limits.EQUAL_INSIDE.kept_by(seen.equal_inside / real)
    ):
        return
    after = consumers(everything, node, KEEPS_ERRORS)
    at_once = node.op.endswith("_loss") and not any(
        a in ("reduction=sum", "reduction=none") for a in node.args
    )
    averaged = _averaged(after, node, everything, [node] if at_once else [])
    if not averaged:
        return
    text = (
        f"{share:.0%} of the positions are blank ends of rows, without error: the mean is "
        f"{1 - share:.2f} of the true one"
    )
    yield finding(
        "The metric averages over padding",
        locate(node, averaged[0]),
        (exact(text, share, signal="evaluation"),),
        REAL_ONLY,
    )


def _averaged(
    after: Sequence[Node], node: Node, everything: Sequence[Node], known: Sequence[Node] = ()
) -> Sequence[Node]:
    """What averages over all positions; nothing where they are masked."""
    if any(n.op in MASKS for n in after):
        return ()
    means = [n for n in after if n.op in ("mean", "nanmean")]
    return known or means or _divided_by_all(after, node, everything)


def _divided_by_all(after: Sequence[Node], node: Node, everything: Sequence[Node]) -> list[Node]:
    """A sum whose count is taken of all positions: the size of the targets is asked for, and none
    of them is ever told apart.
    """
    place = node.site
    near = [
        n
        for n in everything
        if place is not None
        and n.site is not None
        and n.site.file == place.file
        and abs(n.site.line - place.line) <= 6
    ]
    counts = any(
        n.op in ("numel", "nelement") or (n.op == "sum" and _all_ones(n.given[:1])) for n in near
    )
    distinguished = any(n.op in DISTINGUISHES and "output" not in n.roles for n in everything)
    if not counts or distinguished:
        return []
    return [n for n in after if n.op in ("sum", "count_nonzero")]


def _known_padding(run: Run) -> set[int]:
    """Ids that training treats as padding: what its loss ignores, what an embedding declares, what
    fills the ends of the inputs.
    """
    named = [e.data.get("ignore_index") for e in run.of_kind("loss")]
    for deep in run.deep:
        for tokens in deep.tokens:
            named += [tokens.pad_id, tokens.padding_idx]
    return {number for number in named if isinstance(number, int)}


def _of_losses(run: Run, losses: Sequence[Event]) -> Iterator[Finding]:
    def ignored(event: Event) -> int:
        value = event.data.get("ignore_index")
        return int(value) if isinstance(value, int) else -100

    judged = [e for e in losses if e.phase == "eval"]
    ids = {ignored(e) for e in losses if e.phase == "train"}
    if not judged or len(ids) != 1 or min(ids) < 0:
        return
    (pad,) = ids
    if any(
        ignored(e) == pad or e.data.get("weight") or e.data.get("reduction") != "mean"
        for e in judged
    ):
        return
    shares = [
        c.facts.target_ignored_share or 0
        for d in run.deep
        for c in d.losses
        if c.facts.ignore_index == pad
    ]
    share = max(shares, default=0)
    if not limits.PADDED_METRIC.reached_by(share):
        return
    text = (
        f"training ignores target {pad} ({share:.0%} of the positions); the loss of the "
        "evaluation counts it"
    )
    reading = compared(
        text,
        share,
        limits.PADDED_METRIC,
        expected=0,
        signal="events",
        steps=(judged[0].step,),
    )
    yield finding(
        "The validation loss averages over padding",
        locate(judged[0]),
        (reading,),
        Fix(f"Give the validation loss the same ignore_index={pad}."),
    )

"""A loss that does not fit what it is given

## What it sees
What the loss expects and what it got, on deep steps: nll_loss and kl_div want log-probabilities,
which are never positive; cross_entropy wants more than one class and targets that sum to 1; binary
losses want targets in [0, 1]; class indices are names, not amounts. Fires from step 0 for:
probabilities or raw scores into nll_loss or kl_div; cross_entropy over one single class;
cross_entropy on targets with several ones per row; a binary loss on targets outside [0, 1]; a
binary loss per class on targets that are always one-hot; squared or absolute error on class
indices; pairs labelled 0 and 1 in cosine_embedding_loss, which knows 1 and -1; BCELoss that stopped
on a value outside [0, 1].

## Why it matters
The loss can go below zero without end, or is zero whatever the model says, or orders classes that
have no order. It still falls, so that nothing looks broken.

## Looks like
A negative loss; a loss of exactly zero; good loss and bad accuracy.

## Example
    probs = torch.softmax(model(x), dim=-1)
    loss = F.nll_loss(probs, y)

## Use instead
    loss = F.cross_entropy(model(x), y)

## Confirm it
The reading is the proof where values contradict the definition of the loss. A choice that is only
unusual (one-hot targets for a binary loss, error on integers that look like classes) and a crash
are given as likely or suspected.

## False alarms
log_softmax with nll_loss, KL divergence on log-probabilities and BCE on probabilities are right.
Policy gradients and ELBOs may be negative: only library losses with a fixed meaning are judged.
Ratings and counts are amounts: integers as regression targets are only suspected unless they are
evenly spread class labels stored as integers. Several labels per row with a binary loss are right.
Pairs of which some are labelled -1 are right.

## References
PyTorch's documentation of NLLLoss and KLDivLoss ("expects the argument input in the log-space"),
and forum questions about negative losses.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from sawbones.evidence import NothingToJudge, compared, counted, exact, finding, refused
from sawbones.evidence.limits import loss as limits
from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.loss_calls import Seen, reaching
from sawbones.trace.graph import StepGraph
from sawbones.trace.locate import locate

NEEDS = ("events",)
USES = ("made_tensors",)
EXPLAINS = (
    "evaluation.collapsed-prediction",
    "loss.unstable-log",
    "optimizer.lr-too-high",
    "loop.exploding-gradients",
)
EXPERIMENT = None
MIN_PAIRS = 16  # labels of pairs: fewer may be of one kind by chance
MIN_ROWS = 8  # in a batch of one-hot rows
MIN_CLASSES, MAX_CLASSES = 3, 50  # two classes are a binary loss, many are amounts
MIN_PER_CLASS = 20  # targets: fewer do not show whether classes are evenly spread

_Said = tuple[str, Evidence, str, str]  # title, reading, fix, status at most


def check(run: Run) -> Iterator[Finding]:
    if _is_crash(run):
        yield _crash(run)
    calls = [s for s in reaching(run) if s.is_finite and s.call.input.requires_grad]
    if not calls and not _is_crash(run):
        raise NothingToJudge("no loss with a finite value was called on a deep step")
    by_place: dict[object, list[Seen]] = {}
    for seen in calls:
        by_place.setdefault((seen.call.fn, seen.call.site), []).append(seen)
    for group in by_place.values():
        said = (
            _on_log_space(group)
            or _on_classes(group)
            or _on_binary(group)
            or _on_signs(group)
            or _on_indices(group)
        )
        if said is None:
            continue
        title, reading, fix, at_most = said
        seen = group[0]
        made = seen.facts.input_made_at
        # A softmax where a log-softmax is meant is mended where it stands.
        first = made if seen.facts.input_made_by == "softmax" else None
        if seen.call.fn == "cosine_embedding_loss":
            first = _labels_made_at(run, seen)
        where = locate(first, seen.built, seen.call, made)
        yield finding(title, where, (reading,), Fix(fix), at_most=at_most)


def _seen_at(group: list[Seen]) -> dict[str, Any]:
    return {"signal": "loss_calls", "steps": [s.deep.step for s in group]}


def _labels_made_at(run: Run, seen: Seen) -> Site | None:
    """Where the labels of the pairs became a tensor."""
    kind = seen.call.target.dtype if seen.call.target is not None else ""
    rows = [r for r in run.made_tensors if r.op in ("tensor", "as_tensor", "float", "to")]
    mine = [r for r in rows if r.dtype == kind and r.shape]
    # Several tensors made on one line are known by the first of them.
    return min(mine, key=lambda r: len(r.shape)).site if mine else None


def _on_log_space(group: list[Seen]) -> _Said | None:
    first = group[0]
    told = first.facts.input_is_log_probability
    if first.call.fn not in ("nll_loss", "kl_div") or told is None:
        return None
    if any(s.facts.input_is_log_probability for s in group):
        return None
    highest = min(s.number("input_max") for s in group)
    lowest = min((s.call.value for s in group if s.call.value is not None), default=math.nan)
    if not limits.LOG_PROBABILITY.passed_by(highest):
        return None  # never positive: logarithms of something that does not sum to 1
    probabilities = all(s.facts.input_is_probability for s in group)
    what = "probabilities" if probabilities else "raw scores"
    return (
        f"{first.call.fn} gets {what} where it expects log-probabilities",
        exact(
            f"its input lies in [{first.number('input_min'):.3g}, "
            f"{first.number('input_max'):.3g}], which no log-probability does, on {len(group)} "
            f"deep steps; the loss goes down to {lowest:.3g}",
            highest,
            within=limits.LOG_PROBABILITY.value,
            **_seen_at(group),
        ),
        "Use cross_entropy on raw scores, or take log_softmax first.",
        "proven",
    )


def _row_sums(group: list[Seen]) -> list[tuple[float, float]]:
    """(smallest, largest) sum of a row of targets, where it is known of every step."""
    sums = [s.facts.target_row_sum for s in group if s.facts.target_row_sum]
    return sums if len(sums) == len(group) else []


def _on_classes(group: list[Seen]) -> _Said | None:
    facts, call = group[0].facts, group[0].call
    shape = call.input.shape
    # Written by hand, a mask of positives may well be divided by their number, as supervised
    # contrastive losses do.
    if call.fn != "cross_entropy" or facts.by_hand:
        return None
    if len(shape) > 1 and shape[1] == 1:
        return (
            "cross_entropy over one single class is always zero",
            exact(
                f"its input has shape {shape}: one class, so every softmax is 1 and the loss "
                f"is {call.value or 0:.3g}",
                shape[1],
                expected=2,
                **_seen_at(group),
            ),
            "Use binary_cross_entropy_with_logits for one output, or two outputs with "
            "cross_entropy.",
            "proven",
        )
    largest = max((high for _, high in _row_sums(group)), default=math.nan)
    several = facts.target_is_whole and not facts.target_is_index
    if not several or not limits.LABELS_PER_ROW.passed_by(largest):
        return None
    return (
        "cross_entropy on targets with several ones per row",
        compared(
            f"rows of 0/1 targets sum to up to {largest:.0f}: several labels at once",
            largest,
            limits.LABELS_PER_ROW,
            expected=1,
            **_seen_at(group),
        ),
        "Use binary_cross_entropy_with_logits when several labels can be true at once.",
        "likely",
    )


def _on_binary(group: list[Seen]) -> _Said | None:
    first = group[0]
    if not first.call.fn.startswith("binary_cross_entropy") or first.facts.by_hand:
        return None
    low, high = _target_range(group)
    if limits.TARGET_OUTSIDE.passed_by(max(-low, high - 1)):
        return (
            f"{first.call.fn} gets targets outside of [0, 1]",
            compared(
                f"targets lie in [{low:.3g}, {high:.3g}], so the loss has no lower bound",
                max(-low, high - 1),
                limits.TARGET_OUTSIDE,
                expected=0,
                **_seen_at(group),
            ),
            "Give the labels as 0 and 1, or use a loss for the labels as they are "
            "(cross_entropy, soft_margin_loss).",
            "likely",
        )
    sums = _row_sums(group)
    rows, classes = first.call.input.shape[0], first.call.input.shape[-1]
    plain = sums and first.facts.target_is_whole and len(first.call.input.shape) == 2
    if not plain or classes < MIN_CLASSES or rows < MIN_ROWS:
        return None
    if any(low != 1 or high != 1 for low, high in sums):
        return None
    seen = rows * len(group)
    return (
        "A binary loss per class, although exactly one class is right in every row",
        counted(
            f"each of {seen} rows seen has exactly one 1 among {classes} classes",
            seen,
            seen,
            limits.STEPS_AGREEING,
            **_seen_at(group),
        ),
        "Use cross_entropy with class indices when classes exclude each other.",
        "suspected",
    )


def _target_range(group: list[Seen]) -> tuple[float, float]:
    lows, highs = ([s.number(name) for s in group] for name in ("target_min", "target_max"))
    return min(lows), max(highs)


def _on_signs(group: list[Seen]) -> _Said | None:
    """Losses of pairs know 1 for alike and -1 for different; a pair labelled 0 adds nothing at
    all.
    """
    fn = group[0].call.fn
    number = sum(int(s.facts.target_num or 0) for s in group)
    if fn != "cosine_embedding_loss" or number < MIN_PAIRS or _target_range(group) != (0, 1):
        return None
    if any(not s.facts.target_is_whole or (s.facts.target_num_values or 3) > 2 for s in group):
        return None
    return (
        f"{fn} gets labels of 0 and 1 where it expects -1 and 1",
        exact(
            f"all {number} labels seen are 0 or 1; a pair labelled 0 has a loss of zero, so "
            "nothing pushes different pairs apart",
            0,
            expected=-1,
            **_seen_at(group),
        ),
        "Label different pairs with -1: 2 * label - 1.",
        "proven",
    )


def _on_indices(group: list[Seen]) -> _Said | None:
    """Class numbers as amounts: few whole values from 0 on, stored as integers, evenly spread."""
    first = group[0]
    errors = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
    if first.call.fn not in errors or not first.facts.target_is_whole:
        return None
    counts: Counter[int] = Counter()
    for seen in group:
        counts.update(seen.facts.target_counts)
    classes = len(counts)
    if not MIN_CLASSES <= classes <= MAX_CLASSES or sorted(counts) != list(range(classes)):
        return None
    if counts.total() < MIN_PER_CLASS * classes:
        return None
    uneven = max(counts.values()) / max(min(counts.values()), 1)
    sure = limits.UNEVEN_CLASSES.undercut_by(uneven) and any(map(_stored_as_integers, group))
    return (
        f"{first.call.fn} on class numbers 0 to {classes - 1}",
        compared(
            f"all {counts.total()} targets seen are whole numbers from 0 to {classes - 1}"
            + (", stored as integers and evenly spread" if sure else ""),
            uneven,
            limits.UNEVEN_CLASSES,
            below=True,
            **_seen_at(group),
        ),
        "Let the model give one score per class and use cross_entropy.",
        "likely" if sure else "suspected",
    )


def _stored_as_integers(seen: Seen) -> bool:
    target = seen.call.target
    if target is None or target.dtype.startswith("int"):
        return target is not None
    way = StepGraph(seen.deep, with_no_grad=True).way(target, seen.call.op)
    return any(value.dtype.startswith("int") for value, _ in way)


def _is_crash(run: Run) -> bool:
    message = run.ending.message or ""
    return run.ending.exception == "RuntimeError" and "input should be between 0 and 1" in message


def _crash(run: Run) -> Finding:
    message = run.ending.message or ""
    return finding(
        "binary_cross_entropy gets raw scores where it expects probabilities",
        locate(run.ending),
        (refused(f"torch refused: {message.splitlines()[0][:160]}"),),
        Fix("Use binary_cross_entropy_with_logits on raw scores, or apply sigmoid first."),
    )

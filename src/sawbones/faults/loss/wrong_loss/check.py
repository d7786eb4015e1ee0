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
unusual (one-hot targets for a binary loss, error on integers that look like classes) is given as
likely or suspected.

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
from collections.abc import Iterator

import numpy as np

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.loss_calls import Seen, as_site, places, reaching

NEEDS = ("events",)
EXPLAINS = (
    "evaluation.collapsed-prediction",
    "loss.unstable-log",
    "optimizer.lr-too-high",
    "loop.exploding-gradients",
)
EXPERIMENT = None

_Said = tuple[str, str, float, str, str]  # title, status, confidence, evidence, fix


def check(run: Run) -> Iterator[Finding]:
    yield from _crash(run)
    calls = [s for s in reaching(run) if s.is_finite and s.call.input.requires_grad]
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
        title, status, confidence, text, fix = said
        seen = group[0]
        made = as_site(seen.facts.get("input_made_at"))
        # A softmax where a log-softmax is meant is mended where it stands.
        first = made if seen.facts.get("input_made_by") == "softmax" else None
        if seen.call.fn == "cosine_embedding_loss":
            first = _labels_made_at(run, seen)
        yield Finding(
            "loss.wrong-loss",
            status,
            confidence,
            title,
            places(first, seen.built, seen.call.site, made),
            (Evidence(text, "loss_calls", tuple(s.deep.step for s in group), seen.call.value),),
            Fix(fix),
        )


def _labels_made_at(run: Run, seen: Seen) -> Site | None:
    """Where the labels of the pairs became a tensor."""
    kind = seen.call.target.dtype if seen.call.target is not None else ""
    rows = [
        r
        for r in run.facts.get("data_ops") or ()
        if r.get("op") in ("tensor", "as_tensor", "float", "to")
    ]
    mine = [r for r in rows if r.get("dtype") == kind and r.get("shape")]
    # Several tensors made on one line are known by the first of them.
    return as_site(min(mine, key=lambda r: len(r["shape"])).get("site")) if mine else None


def _on_log_space(group: list[Seen]) -> _Said | None:
    first = group[0]
    if (
        first.call.fn not in ("nll_loss", "kl_div")
        or first.facts.get("input_is_log_probability") is None
    ):
        return None
    if any(s.facts.get("input_is_log_probability") for s in group):
        return None
    highest = min(s.number("input_max") for s in group)
    lowest = min((s.call.value for s in group if s.call.value is not None), default=math.nan)
    if not highest > 0.01:  # never positive: logarithms of something that does not sum to 1
        return None
    what = (
        "probabilities" if all(s.facts.get("input_is_probability") for s in group) else "raw scores"
    )
    return (
        f"{first.call.fn} gets {what} where it expects log-probabilities",
        "proven",
        0.96,
        f"its input lies in [{first.number('input_min'):.3g}, {first.number('input_max'):.3g}], which no log-probability does, on "
        f"{len(group)} deep steps; the loss goes down to {lowest:.3g}",
        "Use cross_entropy on raw scores, or take log_softmax first.",
    )


def _on_classes(group: list[Seen]) -> _Said | None:
    first = group[0]
    shape = first.call.input.shape
    if first.call.fn != "cross_entropy":
        return None
    if len(shape) > 1 and shape[1] == 1 and not first.facts.get("by_hand"):
        return (
            "cross_entropy over one single class is always zero",
            "proven",
            0.97,
            (
                f"its input has shape {shape}: one class, so every softmax is 1 and the loss "
                f"is {first.call.value or 0.0:.3g}"
            ),
            (
                "Use binary_cross_entropy_with_logits for one output, or two outputs with "
                "cross_entropy."
            ),
        )
    sums = [s.facts["target_row_sum"] for s in group if s.facts.get("target_row_sum")]
    # Written by hand, a mask of positives may well be divided by their number, as supervised
    # contrastive losses do.
    several = (
        first.facts.get("target_is_whole")
        and not first.facts.get("target_is_index")
        and not first.facts.get("by_hand")
    )
    if sums and len(sums) == len(group) and several and max(high for _, high in sums) > 1.5:
        return (
            "cross_entropy on targets with several ones per row",
            "likely",
            0.85,
            (
                f"rows of 0/1 targets sum to up to {max(high for _, high in sums):.0f}: "
                "several labels at once"
            ),
            "Use binary_cross_entropy_with_logits when several labels can be true at once.",
        )
    return None


def _on_binary(group: list[Seen]) -> _Said | None:
    first = group[0]
    if not first.call.fn.startswith("binary_cross_entropy") or first.facts.get("by_hand"):
        return None
    low, high = (
        min(s.number("target_min") for s in group),
        max(s.number("target_max") for s in group),
    )
    if low < -1e-3 or high > 1 + 1e-3:
        return (
            f"{first.call.fn} gets targets outside of [0, 1]",
            "likely",
            0.9,
            f"targets lie in [{low:.3g}, {high:.3g}], so the loss has no lower bound",
            (
                "Give the labels as 0 and 1, or use a loss for the labels as they are "
                "(cross_entropy, soft_margin_loss)."
            ),
        )
    sums = [s.facts["target_row_sum"] for s in group if s.facts.get("target_row_sum")]
    rows, classes = first.call.input.shape[0], first.call.input.shape[-1]
    plain = (
        len(sums) == len(group)
        and first.facts.get("target_is_whole")
        and len(first.call.input.shape) == 2
    )
    if plain and classes >= 3 and rows >= 8 and all(low == high == 1.0 for low, high in sums):
        return (
            "A binary loss per class, although exactly one class is right in every row",
            "suspected",
            0.5,
            f"each of {rows * len(group)} rows seen has exactly one 1 among {classes} classes",
            "Use cross_entropy with class indices when classes exclude each other.",
        )
    return None


def _on_signs(group: list[Seen]) -> _Said | None:
    """Losses of pairs know 1 for alike and -1 for different; a pair labelled 0 adds nothing at
    all.
    """
    first = group[0]
    low, high = (
        min(s.number("target_min") for s in group),
        max(s.number("target_max") for s in group),
    )
    number = sum(int(s.facts.get("target_num") or 0) for s in group)
    whole = all(
        s.facts.get("target_is_whole") and s.facts.get("target_num_values", 3) <= 2 for s in group
    )
    if (
        first.call.fn != "cosine_embedding_loss"
        or not whole
        or (low, high) != (0.0, 1.0)
        or number < 16
    ):
        return None
    return (
        f"{first.call.fn} gets labels of 0 and 1 where it expects -1 and 1",
        "proven",
        0.95,
        (
            f"all {number} labels seen are 0 or 1; a pair labelled 0 has a loss of zero, so "
            "nothing pushes different pairs apart"
        ),
        "Label different pairs with -1: 2 * label - 1.",
    )


def _on_indices(group: list[Seen]) -> _Said | None:
    """Class numbers as amounts: few whole values from 0 on, stored as integers, evenly spread."""
    first = group[0]
    if first.call.fn not in (
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
    ) or not first.facts.get("target_is_whole"):
        return None
    counts: dict[int, int] = {}
    for seen in group:
        for key, number in (seen.facts.get("target_counts") or {}).items():
            counts[int(key)] = counts.get(int(key), 0) + int(number)
    values = sorted(counts)
    if (
        not 3 <= len(values) <= 50
        or values != list(range(len(values)))
        or sum(counts.values()) < 20 * len(values)
    ):
        return None
    spread = np.array(list(counts.values()), float)
    even = bool(spread.max() < 2.0 * spread.min())
    stored = _stored_as_integers(first) or any(_stored_as_integers(s) for s in group)
    sure = even and stored
    return (
        f"{first.call.fn} on class numbers 0 to {values[-1]}",
        "likely" if sure else "suspected",
        0.8 if sure else 0.4,
        f"all {sum(counts.values())} targets seen are whole numbers from 0 to {values[-1]}"
        + (", stored as integers and evenly spread" if sure else ""),
        "Let the model give one score per class and use cross_entropy.",
    )


def _stored_as_integers(seen: Seen) -> bool:
    target = seen.call.target
    if target is None or target.dtype.startswith("int"):
        return target is not None
    made = {
        output.id: op for op in seen.deep.ops if op.index < seen.call.op for output in op.outputs
    }
    current = target.id
    for _ in range(16):
        op = made.get(current)
        if op is None or not op.inputs:
            return False
        if op.inputs[0].dtype.startswith("int"):
            return True
        current = op.inputs[0].id
    return False


def _crash(run: Run) -> Iterator[Finding]:
    text = run.ending.message or ""
    if (
        run.ending.kind == "exception"
        and "should be between 0 and 1" in text
        and run.ending.site is not None
    ):
        yield Finding(
            "loss.wrong-loss",
            "proven",
            0.95,
            "binary_cross_entropy gets raw scores where it expects probabilities",
            (run.ending.site,),
            (Evidence(f"torch refused: {text.splitlines()[0][:160]}", "crash"),),
            Fix("Use binary_cross_entropy_with_logits on raw scores, or apply sigmoid first."),
        )

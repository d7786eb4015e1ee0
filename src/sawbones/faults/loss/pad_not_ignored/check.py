"""Padded positions that count in the loss

## What it sees
Positions whose input token is padding (the id that fills the ends of rows of different lengths,
found from values) and the gradient of the loss with respect to the scores there. Ignored positions
have a gradient of exactly zero, however they are ignored: ignore_index, a mask, a weight, a
selection. Fires when padded positions carry at least 2 % of the weight of all targets and their
target is one and the same id; from the first deep step on whose batch has rows of different
lengths. Inputs of numbers are padded where all features are zero up to one end of a row; there it
fires when the target is one and the same number, which hardly stands anywhere else.

## Why it matters
The model is paid for predicting padding, which is easy: the loss looks better than it is, depends
on how ragged a batch is, and part of every gradient goes into a task that nobody wants.

## Looks like
Loss falls fast at the start and is lower than the real tokens deserve; generation ends in padding
or stops early.

## Example
    criterion = nn.CrossEntropyLoss()
    loss = criterion(logits.flatten(0, 1), targets.flatten())

## Use instead
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    loss = criterion(logits.flatten(0, 1), targets.flatten())

## Confirm it
The reading is the proof: the gradient that reaches the scores at padded positions was measured and
is not zero.

## False alarms
Where padding and end-of-sequence share an id, the first one is a real target: its input is a word,
not padding, so it is not looked at. Losses that are masked or weighted after reduction="none" have
zero gradient at padding. Labels of -100 are ignored by default. Silence and empty frames of numbers
have the label that silence has elsewhere too, which is at most suspected. A tagger whose padded
positions carry different targets has real labels there. Classifiers of whole texts have no target
per position.

## References
The PyTorch translation tutorial and the Annotated Transformer both take care of it by hand
(ignore_index, padding_idx in the label-smoothing loss); Hugging Face collators pad labels with -100
for this reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.loss_calls import (
    Seen,
    carrying,
    data_sites,
    framework_sites,
    places,
    user_sites,
)

NEEDS = ("loss_calls",)
EXPLAINS = ("evaluation.metric-padding", "pipeline.padding-waste", "data.class-imbalance")
EXPERIMENT = None
SHARE = 0.02
ELSEWHERE = 0.05

_MAKING = frozenset(
    {
        "pad_sequence",
        "tensor",
        "full",
        "new_full",
        "zeros",
        "new_zeros",
        "full_like",
        "zeros_like",
        "pad",
        "cat",
        "stack",
        "as_tensor",
        "__setitem__",
        "from_numpy",
        "masked_fill",
        "where",
        "LongTensor",
    }
)


def check(run: Run) -> Iterator[Finding]:
    every = carrying(run)
    seen = [(s, p) for s in every if (p := _padding(s)) is not None]
    counted = [
        (s, p) for s, p in seen if p["weight_share"] >= SHARE and p["counted"] > 0.5 * p["rows"]
    ]
    if not seen:
        yield from _of_numbers(every)
    if not counted or 2 * len(counted) < len(seen) or 3 * len(seen) < len(every):
        return
    first, padding = max(counted, key=lambda item: item[1]["weight_share"])
    share = sum(p["weight_share"] for _, p in counted) / len(counted)
    own = padding["same_vocabulary"]
    what = (
        f"id {padding['pad_id']}"
        if own
        else f"label {padding['target']} at positions padded with {padding['pad_id']}"
    )
    yield Finding(
        "loss.pad-not-ignored",
        "proven",
        0.97,
        f"Padding counts in the loss: {100 * share:.0f} % of its weight lies on padded positions",
        _where(run, [s for s, _ in counted], own or _of_its_own(first, padding)),
        (
            Evidence(
                f"{padding['counted']} of {padding['rows']} padded positions get a gradient; together they carry "
                f"{100 * padding['weight_share']:.1f} % of the weight of all targets",
                "loss_calls",
                tuple(s.deep.step for s, _ in counted),
                round(share, 4),
                0.0,
            ),
            Evidence(
                f"their target is always {what}, and the loss ignores "
                + (
                    f"{first.facts['ignore_index']} only"
                    if first.facts.get("ignore_index") is not None
                    else "nothing"
                ),
                "loss_calls",
                (first.deep.step,),
                padding["target_share"],
            ),
        ),
        Fix(
            (
                f"Ignore padded targets: ignore_index={padding['pad_id']}, or a mask that "
                "divides by the number of real targets."
            )
            if own
            else "Pad the labels with the id that the loss ignores (-100), not with a real label."
        ),
    )


def _of_numbers(every: list[Seen]) -> Iterator[Finding]:
    """Rows of numbers of different lengths, filled up with zeros."""
    seen = [
        (s, b)
        for s in every
        if (b := s.facts.get("blank")) and (s.facts.get("weights") or {}).get("fit", 0.0) >= 0.9
    ]
    counted = [
        (s, b)
        for s, b in seen
        if b["weight_share"] >= SHARE
        and b["counted"] > 0.9 * b["rows"]
        and b["target_share"] > 0.999
    ]
    if not counted or len(counted) < 0.9 * len(seen) or 2 * len(seen) < len(every):
        return
    elsewhere = max(b["elsewhere"] for _, b in counted)
    if elsewhere > 0.5:
        return
    first, blank = counted[0]
    share = sum(b["weight_share"] for _, b in counted) / len(counted)
    own = elsewhere < ELSEWHERE
    yield Finding(
        "loss.pad-not-ignored",
        "proven" if own else "suspected",
        0.95 if own else 0.4,
        f"Padding counts in the loss: {100 * share:.0f} % of its weight lies on padded positions",
        places(first.call.site, first.built),
        (
            Evidence(
                f"{blank['counted']} of {blank['rows']} positions at the ends of rows whose input is all zeros get a gradient; "
                f"together they carry {100 * blank['weight_share']:.1f} % of the weight of all targets",
                "loss_calls",
                tuple(s.deep.step for s, _ in counted),
                round(share, 4),
                0.0,
            ),
            Evidence(
                (
                    f"their target is always {blank['target']:g}, which {100 * elsewhere:.1f} "
                    "% of the other targets are"
                ),
                "loss_calls",
                (first.deep.step,),
                blank["target_share"],
            ),
        ),
        Fix(
            "Take the loss over the real positions only: select them by their lengths, or "
            "mask and divide by their number."
        ),
    )


def _padding(seen: Seen) -> Mapping[str, Any] | None:
    """What is known of padded positions, when it is sure that they are padding."""
    padding = seen.facts.get("padding")
    weights = seen.facts.get("weights") or {}
    if not padding or weights.get("fit", 0.0) < 0.9:
        return None
    number = int(padding["source"])
    source = seen.deep.tokens[number] if number < len(seen.deep.tokens) else None
    ragged = source is not None and source.pad_side is not None and len(set(source.lengths)) > 1
    if not ragged or padding["target_share"] < 0.9:
        return None
    if padding["same_vocabulary"] and padding["target"] != padding["pad_id"] and padding["counted"]:
        return None  # real targets at positions whose input happens to be the filling id
    return dict(padding)


def _of_its_own(seen: Seen, padding: Mapping[str, Any]) -> bool:
    """The label stands at padding and nowhere else, so it is there to be ignored; a real label
    would have to be kept apart.
    """
    counts = seen.facts.get("target_counts") or {}
    count = counts.get(str(padding["target"]), counts.get(padding["target"]))
    return isinstance(count, int) and count <= padding["rows"]


def _where(run: Run, seen: list[Seen], own_vocabulary: bool) -> tuple[Site, ...]:
    framework = framework_sites(run)
    loss: list[Site | None] = [seen[0].built, seen[0].call.site]
    data: list[Site] = []
    for s in seen:
        data += user_sites(s.deep, _MAKING, s.call.target, s.call.op)
    shape = tuple(seen[0].facts.get("sequence_shape") or ())
    data += data_sites(run, shape, _MAKING)
    copied = (
        data_sites(run, shape, frozenset({"clone"})) if framework else []
    )  # labels that are the ids once more
    data = [*(s for s in copied if s.function and s.code and ".clone(" in s.code), *data]
    mine = [site for site in loss if site is not None and site not in framework]
    made = [site for site in data if site not in framework]
    ordered = mine + made if own_vocabulary and mine else made + mine
    return places(*ordered, *loss)[:4]

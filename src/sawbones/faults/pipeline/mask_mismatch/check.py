"""An attention mask that does not agree with where the padding is

## What it sees
On deep steps, masks of the form (batch, time) that hide keys from an attention or scores, or that
are given to the model beside the tokens, and the padding of those tokens. Fires when a mask hides
real tokens or leaves padding visible at more than 2 % of all positions and is not simply the
opposite, on most deep steps.

## Why it matters
Real words are hidden and filler is read, for every sample, in every layer; the model learns to live
with it.

## Looks like
Quality is below expectation, and results depend on how a batch was padded.

## Example
    mask = torch.arange(width) < lengths[:, None]  # lengths from before the batch was sorted

## Use instead
    mask = input_ids != pad_id

## Confirm it
Nothing is left to confirm: both are compared position by position.

## False alarms
A mask for which 1 means padding is the exact opposite and belongs to model.mask-polarity if it is
used the wrong way. EOS that doubles as PAD makes a mask keep one position more than the padding
suggests: up to one such position per row is forgiven. Loss masks, segment ids and random masks do
not stop at the end of the text and hide no keys. A mask that hides all padding, and single tokens
all over the text besides, leaves words out on purpose.

## References
Masks built with another pad id than the tokenizer's, from lengths before truncation, or not sorted
with their batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sawbones.schema import DeepStep, Evidence, Finding, Fix, Op, Run, Site, TokenInput
from sawbones.stats.data_lines import loader_sites, marked_lines, outside_of_models
from sawbones.stats.loss_calls import as_site, places

NEEDS = ("deep", "tokens")
EXPLAINS = (
    "model.mask-polarity",
    "model.over-masking",
    "loss.pad-not-ignored",
    "evaluation.metric-padding",
)
EXPERIMENT = None
HIDING = ("key_padding_mask", "attn_mask")


def check(run: Run) -> Iterator[Finding]:
    hits: list[tuple[DeepStep, Mapping[str, Any]]] = []
    looked = 0
    for deep in run.deep:
        masks = [m for m in deep.masks if "equal_nonpad" in m and _hides(m)]
        looked += bool(masks)
        hits += [(deep, m) for m in masks if _differs(deep, m)][:1]
    if looked < 2 or len(hits) < max(2, 0.6 * looked):
        return
    _, mask = hits[0]
    agree = max(mask["equal_nonpad"], mask["equal_pad"])
    made = [as_site(u.get("made_at")) for u in mask.get("uses") or ()]
    yield Finding(
        "pipeline.mask-mismatch",
        "likely",
        0.92,
        "The attention mask does not fit the padding",
        _where(run, hits, made),
        (
            Evidence(
                f"mask of shape {tuple(mask['shape'])} agrees with the padding of its tokens at {agree:.1%} of the positions (on "
                f"{mask['on_share']:.1%}), on {len(hits)} of {looked} deep steps",
                "deep",
                tuple(d.step for d, _ in hits[:5]),
                agree,
                1.0,
            ),
        ),
        Fix(
            "Build the mask from the very ids that the model gets (ids != pad_id), after "
            "every sort, cut and concatenation."
        ),
    )


def _hides(mask: Mapping[str, Any]) -> bool:
    uses = mask.get("uses") or ()
    broad = (
        len(mask["shape"]) >= 3
    )  # a mask of (batch, time) that fills labels or ids hides no key; (batch, 1, 1, time) does
    if any(
        u.get("argument") in HIDING
        or (u.get("argument") == "mask" and broad and u.get("name") != "where")
        for u in uses
    ):
        return True
    return mask.get("used_in") == "model input" and mask.get("prefix_rows", 0.0) >= 0.99


def _differs(deep: DeepStep, mask: Mapping[str, Any]) -> bool:
    token = deep.tokens[mask["source"]] if mask.get("source", 99) < len(deep.tokens) else None
    if (
        token is None
        or token.role != "tokens"
        or token.pad_id is None
        or token.pad_share < 0.05
        or token.pad_side == "mixed"
    ):
        return False
    rows, width = len(token.lengths), max(token.shape)
    slack = rows / (rows * width)  # EOS that doubles as PAD: one position per row
    agree = max(mask["equal_nonpad"], mask["equal_pad"])
    return bool(0.2 < agree < 1.0 - max(0.02, 1.01 * slack)) and not _drops_words(mask, token)


def _drops_words(mask: Mapping[str, Any], token: TokenInput) -> bool:
    """All padding is hidden, and single real tokens all over the rows besides: words that are left
    out on purpose.
    """
    hidden = (
        mask["on_share"] if mask["equal_pad"] > mask["equal_nonpad"] else 1.0 - mask["on_share"]
    )
    agree = max(mask["equal_nonpad"], mask["equal_pad"])
    seen_padding = (
        1.0 - agree + token.pad_share - hidden
    ) / 2  # the rest of what does not agree are real tokens
    return bool(seen_padding < 1e-4 and mask.get("prefix_rows", 1.0) < 0.8)


def _where(
    run: Run, hits: list[tuple[DeepStep, Mapping[str, Any]]], made: list[Site | None]
) -> tuple[Site, ...]:
    """Where the mask was made, between two steps or by the collate function, then where it is
    used.
    """
    building = [
        op.site
        for deep, mask in hits
        for op in deep.ops
        if not op.module and _compares(op, tuple(mask["shape"]))
    ]
    building += [
        op.site for deep, mask in hits for op in deep.ops if not op.module and _fills(op, mask)
    ]
    lines = outside_of_models(run, marked_lines(run, "compare"))
    used = as_site(hits[0][1].get("site"))
    ones = outside_of_models(run, marked_lines(run, "mask"))
    return places(
        *building[:1],
        *outside_of_models(run, [s for s in made if s])[:2],
        *ones[:1],
        *loader_sites(run)[::-1],
        *lines[:1],
        used,
    )[:4]


def _compares(op: Op, shape: tuple[int, ...]) -> bool:
    return (
        op.name in ("eq", "ne", "lt", "gt", "le", "ge")
        and bool(op.outputs)
        and op.outputs[0].shape == shape
    )


def _fills(op: Op, mask: Mapping[str, Any]) -> bool:
    """Part of a tensor like the mask is set, to nothing but 0 and 1."""
    made = op.outputs[0] if op.outputs else None
    if (
        op.name != "__setitem__"
        or made is None
        or made.dtype != mask["dtype"]
        or made.shape != tuple(mask["shape"])
    ):
        return False
    return made.max is None or made.max <= 1.0

"""An attention mask that does not agree with where the padding is

## What it sees
On deep steps, masks of the form (batch, time) that hide keys from an attention or scores, or that
are given to the model beside the tokens, and the padding of those tokens. Fires when a mask hides
real tokens or leaves padding visible at more than 2 % of all positions and is not simply the
opposite, on most deep steps. Also lengths by which rows are packed for a recurrent layer, when they
take one place of padding along in every row that has any, on all deep steps: likely.

## Why it matters
Real words are hidden and filler is read, for every sample, in every layer; the model learns to live
with it.

## Looks like
Quality is below expectation, and results depend on how a batch was padded.

## Example
    mask = torch.arange(width) < lengths[:, None]  # lengths from before the batch was sorted

## Use instead
    mask = torch.arange(width) < lengths[order][:, None]  # the order the batch was sorted into

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

from sawbones.evidence import NothingToJudge, counted, exact, finding
from sawbones.evidence.limits import pipeline as limits
from sawbones.schema import DeepStep, Finding, Fix, Op, Run, Site, TokenInput
from sawbones.stats.loss_calls import as_site
from sawbones.trace.feeding import loader_sites
from sawbones.trace.graph import StepGraph, lookup
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import data_lines, outside_of_models

NEEDS = ("deep", "tokens")
USES = ("source_lines", "loaders")
EXPLAINS = (
    "model.mask-polarity",
    "model.over-masking",
    "loss.pad-not-ignored",
    "evaluation.metric-padding",
)
EXPERIMENT = None
HIDING = ("key_padding_mask", "attn_mask")
_COMPARING = ("eq", "ne", "lt", "gt", "le", "ge")
MIN_ROWS = 8  # in which one more place is no accident
MIN_DEEP_STEPS = 2  # one batch may be an odd one

_Mask = Mapping[str, Any]


def check(run: Run) -> Iterator[Finding]:
    packed = [pair for deep in run.deep for pair in _packed(deep)]
    num_rows = sum(extra for _, extra in packed)
    if num_rows >= MIN_ROWS and all(extra for _, extra in packed):
        yield _counts_padding(run, packed)
        return
    hits: list[tuple[DeepStep, _Mask]] = []
    looked = 0
    for deep in run.deep:
        masks = [m for m in deep.masks if "equal_nonpad" in m and _hides(m)]
        looked += bool(masks)
        hits += [(deep, m) for m in masks if _differs(deep, m)][:1]
    if looked < MIN_DEEP_STEPS and not packed:
        raise NothingToJudge("no mask of (batch, time) hides keys on two deep steps")
    if len(hits) < MIN_DEEP_STEPS or not limits.STEPS_SEEN_ON.reached_by(len(hits) / looked):
        return
    mask = hits[0][1]
    text = (
        f"mask of shape {tuple(mask['shape'])} agrees with the padding of its tokens at "
        f"{_agreement(mask):.1%} of the positions (on {mask['on_share']:.1%}), on {len(hits)} of "
        f"{looked} deep steps"
    )
    yield finding(
        "The attention mask does not fit the padding",
        _where(run, hits),
        (
            counted(
                text,
                len(hits),
                looked,
                limits.STEPS_SEEN_ON,
                signal="deep",
                steps=[d.step for d, _ in hits[:5]],
            ),
        ),
        Fix(
            "Build the mask from the very ids that the model gets (ids != pad_id), after "
            "every sort, cut and concatenation."
        ),
    )


def _packed(deep: DeepStep) -> Iterator[tuple[Op, int]]:
    """Rows that are packed by their lengths, and how many places of padding that takes along, where
    it is one of every row that has any. An end of text with the id of padding would look the same;
    it would not be kept at zero.
    """
    graph = StepGraph(deep)
    for token in deep.tokens:
        read = lookup(deep, token)
        rows, width = token.lengths, token.shape[token.time_dim or 0]
        zeroed = token.pad_id is not None and token.padding_idx == token.pad_id
        if read is None or not zeroed or token.pad_side != "right" or min(rows, default=0) < 1:
            continue
        short = sum(length != width for length in rows)
        for op in graph.after(read.outputs):
            if op.name == "_pack_padded_sequence" and op.inputs[1].shape == (len(rows),):
                extra = op.outputs[0].shape[0] - sum(rows)
                yield op, extra if extra == short > 1 else 0


def _counts_padding(run: Run, packed: list[tuple[Op, int]]) -> Finding:
    op, extra = packed[0]
    steps = [d.step for d in run.deep if op in d.ops]
    deep = next(d for d in run.deep if op in d.ops)
    counting = StepGraph(deep, with_no_grad=True).behind(op.inputs[1], op.index, 12)
    compared = [o for o in counting if o.name in _COMPARING]
    text = (
        f"{op.outputs[0].shape[0]} places are packed, {extra} more than there are tokens: one place "
        f"of padding of each of the {extra} rows that have any"
    )
    return finding(
        "The lengths count one place of padding in every shorter row",
        locate(*compared[:1], op, *loader_sites(run)[::-1])[:4],
        (exact(text, extra, signal="deep", steps=steps),),
        Fix("Take the lengths from the very ids that are packed: (ids != pad_id).sum(1)."),
        at_most="likely",
    )


def _agreement(mask: _Mask) -> float:
    """Whichever way round the mask is meant."""
    return float(max(mask["equal_nonpad"], mask["equal_pad"]))


def _hides(mask: _Mask) -> bool:
    # a mask of (batch, time) that fills labels or ids hides no key; (batch, 1, 1, time) does
    broad = len(mask["shape"]) >= 3
    for use in mask.get("uses") or ():
        filled = use.get("argument") == "mask" and use.get("name") != "where"
        if use.get("argument") in HIDING or (broad and filled):
            return True
    return mask.get("used_in") == "model input" and limits.MASK_IS_PREFIX.reached_by(
        mask.get("prefix_rows")
    )


def _differs(deep: DeepStep, mask: _Mask) -> bool:
    tokens = dict(enumerate(deep.tokens)).get(mask.get("source", -1))
    if (
        tokens is None
        or tokens.role != "tokens"
        or tokens.pad_id is None
        or tokens.pad_side == "mixed"
        or not limits.PADDED_POSITIONS.reached_by(tokens.pad_share)
    ):
        return False
    off = 1 - _agreement(mask)
    return (
        limits.MASK_RELATED.passed_by(1 - off)
        and limits.MASK_DISAGREES.passed_by(off)
        and limits.POSITIONS_OFF.passed_by(off * max(tokens.shape))
        and not _drops_words(mask, tokens)
    )


def _drops_words(mask: _Mask, tokens: TokenInput) -> bool:
    """All padding is hidden, and single real tokens all over the rows besides: words that are left
    out on purpose.
    """
    shown = mask["on_share"]
    opposite = mask["equal_pad"] - mask["equal_nonpad"] > 0
    hidden = shown if opposite else 1 - shown
    # the rest of what does not agree are real tokens
    seen_padding = (1 - _agreement(mask) + tokens.pad_share - hidden) / 2
    scattered = limits.MASK_IS_SCATTERED.undercut_by(mask.get("prefix_rows", 1))
    return scattered and limits.VISIBLE_PADDING.undercut_by(seen_padding)


def _where(run: Run, hits: list[tuple[DeepStep, _Mask]]) -> tuple[Site, ...]:
    """Where the mask was made, between two steps or by the collate function, then where it is
    used.
    """
    ops = [(op, mask) for deep, mask in hits for op in deep.ops if not op.module]
    building = [op.site for op, mask in ops if _compares(op, mask)]
    building += [op.site for op, mask in ops if _fills(op, mask)]
    first = hits[0][1]
    made = locate(*(as_site(u.get("made_at")) for u in first.get("uses") or ()))
    return locate(
        *building[:1],
        *outside_of_models(run, made)[:2],
        *data_lines(run, "mask")[:1],
        *loader_sites(run)[::-1],
        *data_lines(run, "compare")[:1],
        as_site(first.get("site")),
    )[:4]


def _compares(op: Op, mask: _Mask) -> bool:
    return (
        op.name in _COMPARING and bool(op.outputs) and op.outputs[0].shape == tuple(mask["shape"])
    )


def _fills(op: Op, mask: _Mask) -> bool:
    """Part of a tensor like the mask is set, to nothing but 0 and 1."""
    made = op.outputs[0] if op.name == "__setitem__" and op.outputs else None
    alike = made and made.dtype == mask["dtype"] and made.shape == tuple(mask["shape"])
    return bool(made and alike and (made.max or 0) <= 1)

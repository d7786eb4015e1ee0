"""An attention mask of the wrong shape, or one that broadcasts over the wrong dimension

## What it sees
Two things. A crash in the operator that applies a mask to scores, when their sizes do not fit: it
names both. And on deep steps a mask that equals the padding of the tokens, or holds one layer per
example and head, while attention still puts mass on padded keys (over 0.1 %), or the padding of as
many examples as there are positions, applied as (queries, keys) to all of them, or a mask that
hides whole queries and no key, or one layer per example aligned with as many heads: it was laid out
or broadcast the wrong way.

## Why it matters
Examples are masked with the mask of another example, queries are masked instead of keys, or the run
dies at the first batch of another length.

## Looks like
A shape error only for the last batch or for short sequences; or nothing at all, and padding that
changes the answers.

## Example
    mask = mask.repeat(num_heads, 1, 1)
    out, _ = attention(x, x, x, attn_mask=mask)

## Use instead
    mask = mask.repeat_interleave(num_heads, dim=0)
    out, _ = attention(x, x, x, attn_mask=mask)

## Confirm it
The shapes at the failure, or the attention on padding measured with the mask in place, are the
proof.

## False alarms
A model without any padding mask attends to padding too, but then there is no mask that describes
the padding. Masks that are additive with a finite bias, and causal masks without padding, are not
compared. Biases and windows for each head come from one number per head, not from ids per position.
Shape errors of other operators are not looked at.

## References
MultiheadAttention wants (batch * heads, queries, keys) with the heads of one example next to each
other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sawbones.schema import Attention, DeepStep, Evidence, Finding, Fix, Op, Run, Site, Value
from sawbones.stats.dataflow import Flow
from sawbones.stats.failures import failure
from sawbones.stats.loss_calls import as_site, places
from sawbones.stats.sequences import MASKING, attention_ops, built_sites, mask_makers

NEEDS = ("deep",)
EXPLAINS = ("pipeline.mask-mismatch", "model.over-masking")
EXPERIMENT = None
LEFT_OVER = 1e-3
_APPLYING = (
    "masked_fill",
    "masked_fill_",
    "where",
    "scaled_dot_product_attention",
    "multi_head_attention_forward",
    "__setitem__",
)
_SAID = (
    "attn_mask",
    "key_padding_mask",
    "must match the size",
    "expanded size",
    "should be",
    "shape of the 2d",
    "shape of the 3d",
)


def check(run: Run) -> Iterator[Finding]:
    yield from _crashed(run)
    for deep in run.deep:
        found = (
            _leaky(deep)
            or _rows_for_queries(deep)
            or _hides_queries(deep)
            or _examples_for_heads(deep)
        )
        if found is not None:
            yield found
            return


def _finding(
    text: str, signal: str, step: int, where: tuple[Site, ...], fix: str, value: float | None = None
) -> Finding:
    evidence = Evidence(text, signal, (step,), value, 0.0 if value is not None else None)
    return Finding(
        "model.mask-shape",
        "proven",
        0.95,
        "The attention mask has the wrong shape",
        where,
        (evidence,),
        Fix(fix),
    )


def _crashed(run: Run) -> Iterator[Finding]:
    failed = failure(run)
    if failed is None:
        return
    message = failed.message.lower()
    adds_mask = failed.op in ("add", "add_") and any(
        (v.get("nonfinite") or 0) > 0 for v in failed.inputs
    )
    if not (failed.op in _APPLYING or adds_mask) or not any(word in message for word in _SAID):
        return
    shapes = " and ".join(str(shape) for shape in failed.shapes[:4])
    square = max((s[-1] for s in failed.shapes if len(s) >= 2 and s[-1] == s[-2]), default=2)
    text = (
        f"{failed.op} failed at step {failed.step} with {shapes}: "
        f"{failed.message.splitlines()[0][:160]}"
    )
    where = places(failed.site, *built_sites(run, ("tril", "triu"), square))
    yield _finding(
        text,
        "crash",
        failed.step,
        where,
        "Cut or build the mask for the length of the batch at hand, so that it fits the scores.",
    )


def _leaky(deep: DeepStep) -> Finding | None:
    padded = [
        t
        for t in deep.tokens
        if t.pad_side is not None and t.pad_share > 0.02 and t.time_dim is not None
    ]
    if not padded:
        return None
    batch = {t.shape[1 - (t.time_dim or 0)] for t in padded}
    for attention, op in attention_ops(deep):
        if attention.pad_mass is None or attention.pad_mass <= LEFT_OVER:
            continue
        shape = tuple(attention.mask.get("shape") or ())
        per_head = (
            len(shape) == 3
            and any(shape[0] == n * attention.heads for n in batch)
            and attention.heads > 1
        )
        share = attention.mask.get("allowed_share")
        if attention.kind == "mha" and per_head and isinstance(share, float) and share < 0.98:
            text = (
                f"real tokens put {100 * attention.pad_mass:.1f} % of their attention on padding although the mask {shape} has a "
                f"layer for every example and head: the layers are not in the order (example, head)"
            )
        elif (
            len(shape) == 4
            and shape[-1] == 1
            and shape[-2] == attention.queries > 1
            and isinstance(share, float)
            and share < 0.98
        ):
            text = (
                f"the mask {shape} hides queries instead of keys: real tokens put {100 * attention.pad_mass:.1f} % of their "
                f"attention on padding"
            )
        else:
            continue
        made = [site for site in mask_makers(deep, attention, op) if site != attention.site]
        uses = [
            as_site(u.get("made_at"))
            for m in deep.masks
            if tuple(m["shape"]) == shape
            for u in m.get("uses") or ()
        ]
        where = places(
            *[u for u in uses if u is not None and u != attention.site], *made, attention.site
        )
        fix = (
            "Give each example its own mask along keys: (batch, 1, 1, keys), or "
            "repeat_interleave over the heads."
        )
        return _finding(text, "attention", deep.step, where, fix, attention.pad_mass)
    return None


def _rows_for_queries(deep: DeepStep) -> Finding | None:
    """As many examples as positions: the padding of the batch, one row per example, taken for one
    row per query.
    """
    for attention, op in attention_ops(deep):
        shape = tuple(attention.mask.get("shape") or ())
        size = attention.keys
        square = (
            len(shape) >= 2
            and shape[-1] == shape[-2] == size == attention.queries > 2
            and all(n == 1 for n in shape[:-2])
        )
        if not square or attention.mask.get("triangle") is not None:
            continue
        if not any(
            _describes_padding(mask, size) for mask in deep.masks if tuple(mask["shape"]) == shape
        ):
            continue
        text = (
            f"the mask {shape} holds the padding of the {size} examples, one row each, and is applied to {size} queries by {size} "
            f"keys: query i of every example is masked with the padding of example i"
        )
        used = as_site(attention.mask.get("mask_site"))
        where = places(
            used,
            *[site for site in mask_makers(deep, attention, op) if site != attention.site],
            attention.site,
        )
        return _finding(
            text,
            "attention",
            deep.step,
            where,
            "Give each example its own mask along keys: mask[:, None, None, :].",
        )
    return None


def _hides_queries(deep: DeepStep) -> Finding | None:
    """Every row of the mask is all open or all closed, both kinds within one example: no key is
    ever hidden from a real query.
    """
    for attention, op in attention_ops(deep):
        shape = tuple(attention.mask.get("shape") or ())
        several = (
            attention.mask.get("masks", 1) > 1 or "key_padding" in attention.mask
        )  # another one may hide the keys
        if (
            not attention.mask.get("rows_only")
            or several
            or len(shape) < 3
            or attention.queries < 3
            or attention.keys < 3
        ):
            continue
        text = (
            f"the mask {shape} hides whole queries and no key from the others: padding is "
            "hidden along the wrong dimension"
        )
        used = as_site(attention.mask.get("mask_site"))
        uses = [
            as_site(u.get("made_at"))
            for m in deep.masks
            if tuple(m["shape"]) == shape
            for u in m.get("uses") or ()
        ]
        made = [site for site in mask_makers(deep, attention, op) if site != attention.site]
        where = places(*uses[:1], used, *made, attention.site)
        return _finding(
            text, "attention", deep.step, where, "Lay the mask along keys: mask[:, None, None, :]."
        )
    return None


def _examples_for_heads(deep: DeepStep) -> Finding | None:
    """As many examples as heads: a mask with one layer per example, aligned with the heads of every
    example.
    """
    flow = Flow(deep)
    for attention, op in attention_ops(deep):
        for user, mask, scores in _masked(flow, attention, op):
            layers = mask.shape[0] if len(mask.shape) == 3 else 0
            if (
                len(scores) != 4
                or not layers == scores[0] == scores[1] > 1
                or mask.requires_grad
                or mask.shape[-1] != attention.keys
            ):
                continue
            if not _one_layer_per_example(
                flow, mask, user.index, {attention.keys, attention.queries}
            ):
                continue
            text = (
                f"the mask {mask.shape} holds one layer for each of {layers} examples; scores {scores} align "
                f"it with the {layers} heads: head i of every example is masked with the mask of example i"
            )
            made = flow.maker(mask, user.index)
            where = places(made.site if made is not None else None, user.site, attention.site)
            return _finding(
                text,
                "ops",
                deep.step,
                where,
                "Give the mask a dimension for the heads: mask[:, None].",
            )
    return None


def _masked(
    flow: Flow, attention: Attention, op: Op
) -> Iterator[tuple[Op, Value, tuple[int, ...]]]:
    """What is laid over the scores: the operator, the value, and the shape of the scores."""
    if attention.kind == "sdpa" and len(op.inputs) > 3 and len(op.inputs[0].shape) == 4:
        yield op, op.inputs[3], (*op.inputs[0].shape[:2], attention.queries, attention.keys)
    if attention.kind == "softmax" and op.inputs:
        for user in flow.behind(op.inputs[0], op.index, 12):
            if user.name in MASKING and user.outputs:
                for value in user.inputs:
                    if value.shape != user.outputs[0].shape:
                        yield user, value, user.outputs[0].shape


def _one_layer_per_example(flow: Flow, mask: Value, before: int, lengths: set[int]) -> bool:
    """Made in this step from whole numbers or marks per example and position, by operators that all
    keep the examples in front.

    A mask for each head comes from one number per head (a slope, a window), never from ids per
    position.
    """
    count = mask.shape[0]
    kept = all(v.shape[0] == count for o in flow.behind(mask, before) for v in o.outputs if v.shape)
    given = [
        v
        for v in flow.sources(mask, before)
        if v.id != mask.id and len(v.shape) == 2 and v.shape[1] in lengths
    ]
    return kept and any(v.shape[0] == count and v.dtype.startswith(("int", "bool")) for v in given)


def _describes_padding(mask: Mapping[str, Any], size: int) -> bool:
    """It equals (or is the opposite of) what is padded: of the tokens, or of vectors that are
    nothing but zeros.
    """
    share = float(mask.get("on_share") or 0.0)
    fits = max(
        float(mask.get(key) or 0.0)
        for key in ("equal_nonpad", "equal_pad", "equal_blank", "equal_filled")
    )
    return fits > 0.999 and 0.02 < share < 0.98 and size > 2

"""An attention mask of the wrong shape, or one that broadcasts over the wrong dimension

## What it sees
Two things. A crash in the operator that applies a mask to scores, or in nn.MultiheadAttention, when
their sizes do not fit: it names both. And on deep steps a mask that equals the padding of the tokens, or holds one layer per
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
The attention on padding measured with the mask in place, or the shapes that met, are the proof. A
crash makes it likely.

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

from sawbones.evidence import NothingToJudge, exact, explained, finding, refused
from sawbones.evidence.limits import model as limits
from sawbones.schema import Attention, DeepStep, Evidence, Finding, Fix, Op, Run, Site, Size, Value
from sawbones.stats.crash_clashes import attention_clash
from sawbones.stats.crash_shapes import written
from sawbones.stats.crashes import crash, frame_of, makers, refusal
from sawbones.stats.failures import failure
from sawbones.stats.loss_calls import as_site
from sawbones.stats.sequences import MASKING, attention_ops, mask_makers
from sawbones.trace.graph import StepGraph
from sawbones.trace.locate import locate
from sawbones.trace.made_lines import made_at

NEEDS = ("events",)
USES = ("deep", "made_tensors", "crash", "crash_record")
EXPLAINS = ("pipeline.mask-mismatch", "model.over-masking", "model.shape-mismatch")
EXPERIMENT = None
MIN_LENGTH = 3  # queries and keys: shapes of fewer fit by chance
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
    refused_masks = list(_refused(run))
    crashed = None if refused_masks else _crashed(run)
    yield from refused_masks
    if crashed is not None:
        yield crashed
    elif refused_masks:
        return
    elif not any(deep.attention for deep in run.deep):
        raise NothingToJudge("no attention was seen")
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


def _refused(run: Run) -> Iterator[Finding]:
    """A mask of nn.MultiheadAttention that it refuses."""
    call = refusal(run) if run.ending.crash is not None else None
    if call is None:
        return
    frame = frame_of(crash(run), "multi_head_attention_forward")
    clash = attention_clash(call, frame.values) if frame is not None else None
    if clash is None:
        return
    given, told = clash
    made = [a for a in makers(run, given.name) if a.text]
    yield explained(
        run,
        told.title,
        (*(a.site for a in made[:1]), call.frame.site, *(a.site for a in made[1:2])),
        Fix(told.fix),
        expected=told.expected,
        got=told.got,
        because=f"{made[0].name} comes from {made[0].text} (line {made[0].site.line})"
        if made
        else "",
        sizes=[Size(g.name, written(g.bound.shape), g.bound.dtype) for g in call.tensors[:4]],
        exactly=told.exactly,
    )


def _finding(reading: Evidence, where: tuple[Site, ...], fix: str) -> Finding:
    return finding("The attention mask has the wrong shape", where, (reading,), Fix(fix))


def _crashed(run: Run) -> Finding | None:
    failed = failure(run)
    if failed is None or not any(word in failed.message.lower() for word in _SAID):
        return None
    infinite = any((v.get("nonfinite") or 0) > 0 for v in failed.inputs)
    if failed.op not in _APPLYING and not (failed.op in ("add", "add_") and infinite):
        return None
    shapes = " and ".join(str(shape) for shape in failed.shapes[:4])
    square = max((s[-1] for s in failed.shapes if len(s) >= 2 and s[-1] == s[-2]), default=2)
    text = (
        f"{failed.op} failed at step {failed.step} with {shapes}: "
        f"{failed.message.splitlines()[0][:160]}"
    )
    return _finding(
        refused(text, steps=(failed.step,)),
        locate(failed, *made_at(run, ("tril", "triu"), square=square)),
        "Cut or build the mask for the length of the batch at hand, so that it fits the scores.",
    )


def _leaky(deep: DeepStep) -> Finding | None:
    padded = [
        t
        for t in deep.tokens
        if t.pad_side is not None
        and t.time_dim is not None
        and limits.PADDING_SEEN.passed_by(t.pad_share)
    ]
    batch = {t.shape[1 - (t.time_dim or 0)] for t in padded}
    for attention, op in attention_ops(deep) if padded else ():
        mass, shape = attention.pad_mass, tuple(attention.mask.get("shape") or ())
        hides = limits.KEYS_OPEN.undercut_by(attention.mask.get("allowed_share"))
        if mass is None or not hides or not limits.PAD_MASS.passed_by(mass):
            continue
        seen = f"real tokens put {100 * mass:.1f} % of their attention on padding"
        if attention.kind == "mha" and _has_layer_per_head(shape, batch, attention.heads):
            text = (
                f"{seen} although the mask {shape} has a layer for every example and head: the "
                "layers are not in the order (example, head)"
            )
        elif len(shape) == 4 and shape[-1] == 1 and shape[-2] == attention.queries > 1:
            text = f"the mask {shape} hides queries instead of keys: {seen}"
        else:
            continue
        made = [s for s in _made_at(deep, shape) if s != attention.site]
        return _finding(
            exact(text, mass, signal="attention", steps=(deep.step,)),
            locate(*made, *_makers(deep, attention, op)),
            "Give each example its own mask along keys: (batch, 1, 1, keys), or "
            "repeat_interleave over the heads.",
        )
    return None


def _has_layer_per_head(shape: tuple[int, ...], batch: set[int], heads: int) -> bool:
    return len(shape) == 3 and heads > 1 and any(shape[0] == n * heads for n in batch)


def _made_at(deep: DeepStep, shape: tuple[int, ...]) -> tuple[Site, ...]:
    """Where the masks of this shape were made."""
    masks = [mask for mask in deep.masks if tuple(mask["shape"]) == shape]
    return locate(*(as_site(use.get("made_at")) for m in masks for use in m.get("uses") or ()))


def _makers(deep: DeepStep, attention: Attention, op: Op) -> tuple[Site, ...]:
    """Lines of the step that made the mask, and last the attention itself."""
    made = [site for site in mask_makers(deep, attention, op) if site != attention.site]
    return locate(*made, attention)


def _rows_for_queries(deep: DeepStep) -> Finding | None:
    """As many examples as positions: the padding of the batch, one row per example, taken for one
    row per query.
    """
    for attention, op in attention_ops(deep):
        shape = tuple(attention.mask.get("shape") or ())
        size = attention.keys
        square = size == attention.queries and shape == (1,) * (len(shape) - 2) + (size, size)
        if not square or size < MIN_LENGTH or attention.mask.get("triangle") is not None:
            continue
        if not any(_describes_padding(m) for m in deep.masks if tuple(m["shape"]) == shape):
            continue
        text = (
            f"the mask {shape} holds the padding of the {size} examples, one row each, and is "
            f"applied to {size} queries by {size} keys: query i of every example is masked with "
            "the padding of example i"
        )
        used = as_site(attention.mask.get("mask_site"))
        return _finding(
            exact(text, size, signal="attention", steps=(deep.step,)),
            locate(used, *_makers(deep, attention, op)),
            "Give each example its own mask along keys: mask[:, None, None, :].",
        )
    return None


def _hides_queries(deep: DeepStep) -> Finding | None:
    """Every row of the mask is all open or all closed, both kinds within one example: no key is
    ever hidden from a real query.
    """
    for attention, op in attention_ops(deep):
        mask = attention.mask
        shape = tuple(mask.get("shape") or ())
        several = mask.get("masks", 1) > 1 or "key_padding" in mask  # another one may hide the keys
        if not mask.get("rows_only") or several or len(shape) < 3:
            continue
        if min(attention.queries, attention.keys) < MIN_LENGTH:
            continue
        text = (
            f"the mask {shape} hides whole queries and no key from the others: padding is "
            "hidden along the wrong dimension"
        )
        made, used = _made_at(deep, shape), as_site(mask.get("mask_site"))
        return _finding(
            exact(text, 0, expected=1, signal="attention", steps=(deep.step,)),  # hidden keys
            locate(*made[:1], used, *_makers(deep, attention, op)),
            "Lay the mask along keys: mask[:, None, None, :].",
        )
    return None


def _examples_for_heads(deep: DeepStep) -> Finding | None:
    """As many examples as heads: a mask with one layer per example, aligned with the heads of every
    example.
    """
    graph = StepGraph(deep)
    for attention, op in attention_ops(deep):
        lengths = {attention.keys, attention.queries}
        for user, mask, scores in _masked(graph, attention, op):
            layers = mask.shape[0] if len(mask.shape) == 3 and len(scores) == 4 else 0
            if layers < 2 or scores[:2] != (layers, layers) or mask.requires_grad:
                continue
            if mask.shape[-1] != attention.keys:
                continue
            if not _one_layer_per_example(graph, mask, user.index, lengths):
                continue
            text = (
                f"the mask {mask.shape} holds one layer for each of {layers} examples; scores "
                f"{scores} align it with the {layers} heads: head i of every example is masked "
                "with the mask of example i"
            )
            made = graph.maker(mask, user.index)
            return _finding(
                exact(text, layers, expected=1, signal="ops", steps=(deep.step,)),
                locate(made, user, attention),
                "Give the mask a dimension for the heads: mask[:, None].",
            )
    return None


def _masked(
    graph: StepGraph, attention: Attention, op: Op
) -> Iterator[tuple[Op, Value, tuple[int, ...]]]:
    """What is laid over the scores: the operator, the value, and the shape of the scores."""
    if attention.kind == "sdpa" and len(op.inputs) > 3 and len(op.inputs[0].shape) == 4:
        yield op, op.inputs[3], (*op.inputs[0].shape[:2], attention.queries, attention.keys)
    if attention.kind == "softmax" and op.inputs:
        for user in graph.behind(op.inputs[0], op.index, 12):
            if user.name in MASKING and user.outputs:
                for value in user.inputs:
                    if value.shape != user.outputs[0].shape:
                        yield user, value, user.outputs[0].shape


def _one_layer_per_example(graph: StepGraph, mask: Value, before: int, lengths: set[int]) -> bool:
    """Made in this step from whole numbers or marks per example and position, by operators that all
    keep the examples in front.

    A mask for each head comes from one number per head (a slope, a window), never from ids per
    position.
    """
    count = mask.shape[0]
    kept = all(
        v.shape[0] == count for o in graph.behind(mask, before) for v in o.outputs if v.shape
    )
    given = [
        v
        for v in graph.sources(mask, before)
        if v.id != mask.id and len(v.shape) == 2 and v.shape[1] in lengths
    ]
    return kept and any(v.shape[0] == count and v.dtype.startswith(("int", "bool")) for v in given)


def _describes_padding(mask: Mapping[str, Any]) -> bool:
    """It equals (or is the opposite of) what is padded: of the tokens, or of vectors that are
    nothing but zeros.
    """
    share = float(mask.get("on_share") or 0)
    shows = limits.PADDING_SEEN.passed_by(min(share, 1 - share))
    names = ("equal_nonpad", "equal_pad", "equal_blank", "equal_filled")
    return shows and any(limits.MASK_EQUAL.passed_by(mask.get(name)) for name in names)

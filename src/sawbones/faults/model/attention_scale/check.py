"""Attention scores that are not divided by the root of the head's width, or divided twice

## What it sees
On the first deep step, before training has changed the weights, the spread of the scores that enter
the softmax of an attention, against what the same queries and keys would give over sqrt(d). Fires
when the spread is sqrt(d) times too large (within 5 %) and over 0.8, for queries and keys that come
out of learned projections (by hand, or since scaled_dot_product_attention is told scale=1 or
sqrt(d)); or when queries are scaled by 1/sqrt(d) and the product is divided by sqrt(d) once more.
Step 0.

## Why it matters
Unscaled scores make the softmax nearly hard: almost all weight on one key, hardly any gradient.
Scaled twice, attention is almost uniform and takes long to learn to look anywhere.

## Looks like
Attention entropy near 0 (or near its maximum) at the start; slow or unstable training that gets
worse with wider heads.

## Example
    q = q * self.head_dim**-0.5
    y = F.scaled_dot_product_attention(q, k, v)

## Use instead
    y = F.scaled_dot_product_attention(q, k, v)

## Confirm it
The factor is measured on the scores themselves.

## False alarms
Dot-product attention of recurrent models scores raw states, without projections, and is left alone.
T5 leaves the division out, starts from smaller query weights (queries are smaller than keys by
sqrt(d)) and may add a learned bias to the scores. A scale of 1/d (maximal update parametrisation)
is written in one place; only two separate scalings count as twice. Cosine attention with a learned
temperature has another factor.

## References
Vaswani et al. 2017, section 3.2.1, give the reason for the division. scaled_dot_product_attention
scales by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from sawbones.schema import Attention, DeepStep, Evidence, Finding, Fix, Op, Run
from sawbones.stats.dataflow import FORMING, Flow
from sawbones.stats.loss_calls import places
from sawbones.stats.sequences import attention_ops

NEEDS = ("attention", "ops")
EXPLAINS = ("model.vanishing-gradients", "optimizer.lr-too-low")
EXPERIMENT = None
NEAR = 0.05
SPREAD = 0.8
PEAKED = 2.5  # scores that spread so far are sure of one key whatever is added to them
_PRODUCTS = ("matmul", "bmm", "einsum", "__matmul__", "baddbmm")
_SCALING = ("mul", "div", "mul_", "div_", "__mul__", "__truediv__")


def check(run: Run) -> Iterator[Finding]:
    if not run.deep or run.deep[0].step > 2:
        return
    deep = run.deep[0]
    flow = Flow(deep)
    for attention, op in attention_ops(deep):
        if attention.head_dim < 4 or attention.kind == "mha":
            continue
        if attention.kind == "sdpa":
            found = _twice(deep, flow, attention, op) or _told_wrong(deep, flow, attention, op)
        else:
            found = _by_hand(deep, flow, attention, op)
        if found is not None:
            yield found
            return


def _number(op: Op | None) -> float | None:
    """The constant that an operator multiplies by."""
    if op is None or op.name not in _SCALING:
        return None
    number = op.args.get("other")
    if not isinstance(number, (int, float)) and len(op.inputs) == 2 and op.inputs[1].shape == ():
        number = op.inputs[1].mean
    if not isinstance(number, (int, float)) or not number:
        return None
    return 1.0 / number if op.name.strip("_").startswith(("div", "truediv")) else float(number)


def _twice(deep: DeepStep, flow: Flow, attention: Attention, op: Op) -> Finding | None:
    inner = op.args.get("scale")
    root = math.sqrt(attention.head_dim)
    given = float(inner) if isinstance(inner, (int, float)) else 1.0 / root
    for value in op.inputs[:2]:
        _, made = flow.origin(value, op.index)
        factor = _number(made)
        if (
            made is None
            or factor is None
            or abs(factor * root - 1.0) > NEAR
            or abs(given * root - 1.0) > NEAR
        ):
            continue
        text = (
            f"queries or keys are multiplied by {factor:.4g}, and the attention divides by "
            f"sqrt({attention.head_dim}) again"
        )
        return _finding(
            deep,
            attention,
            made,
            text,
            1.0 / root,
            "Remove one of the two scalings (or pass scale=1.0).",
            "proven",
        )
    return None


def _told_wrong(deep: DeepStep, flow: Flow, attention: Attention, op: Op) -> Finding | None:
    """The fused attention is told not to divide (or to multiply), and nothing before it made the
    queries or keys smaller.
    """
    scale, spread, root = op.args.get("scale"), attention.score_std, math.sqrt(attention.head_dim)
    if (
        not isinstance(scale, (int, float))
        or not spread
        or min(abs(scale - 1.0), abs(scale / root - 1.0)) > NEAR
    ):
        return None
    makers = [flow.origin(v, op.index)[1] for v in op.inputs[:2]]
    if any(
        m is None or m.name not in ("linear", "matmul", "addmm", "conv1d", "conv2d") for m in makers
    ):
        return None  # normalised, rotated or scaled by something: these have a scale of their own
    small, large = sorted(v.std or 0.0 for v in op.inputs[:2])
    biased = len(op.inputs) > 3 and op.inputs[3].requires_grad
    if spread < PEAKED and (biased or small <= 0.0 or small / large < 1.3 / root):
        return None
    text = (
        f"the attention is told scale={scale:.4g} where 1/sqrt({attention.head_dim}) is {1.0 / root:.4g}: scores spread by "
        f"{spread:.3g}, entropy is {attention.entropy:.2f} of its maximum"
    )
    status = "proven" if spread > 1.5 else "likely" if spread > SPREAD else "suspected"
    return _finding(
        deep,
        attention,
        op,
        text,
        scale * root,
        "Leave scale out: it is 1/sqrt(head width) by itself.",
        status,
    )


def _by_hand(deep: DeepStep, flow: Flow, attention: Attention, op: Op) -> Finding | None:
    spread, expected = attention.score_std, attention.expected_score_std
    behind = list(flow.behind(op.inputs[0], op.index, 16))
    product = next((o for o in behind if o.name in _PRODUCTS), None)
    if (
        not spread
        or not expected
        or product is None
        or not attention.mask.get("axis_is_keys", True)
    ):
        return None
    root, ratio = math.sqrt(attention.head_dim), spread / expected
    if (spread < PEAKED and _adds_learned(behind, product)) or not _projected(flow, product):
        return None
    if abs(ratio / root - 1.0) < NEAR or abs(ratio / attention.head_dim - 1.0) < NEAR:
        if spread < PEAKED and _in_the_weights(product, root):
            return None
        text = (
            f"scores spread by {spread:.3g}, {ratio:.3g} times what the division by sqrt({attention.head_dim}) would give; "
            f"attention entropy is {attention.entropy:.2f} of its maximum"
        )
        status = "proven" if spread > 1.5 else "likely" if spread > SPREAD else "suspected"
        return _finding(
            deep,
            attention,
            product,
            text,
            ratio,
            "Divide the scores by the square root of the head's width.",
            status,
        )
    scalings = [o for o in behind if o.index > product.index and _number(o) is not None]
    before = [
        o
        for v in product.inputs[:2]
        if _number(o := flow.origin(v, product.index)[1]) is not None and o is not None
    ]
    if abs(ratio * root - 1.0) < NEAR and len(scalings) + len(before) >= 2:
        text = (
            f"the scores are scaled {len(scalings) + len(before)} times and spread by "
            f"{spread:.3g}, {ratio:.3g} of what they should"
        )
        where = (before + scalings)[0]
        return _finding(
            deep, attention, where, text, ratio, "Remove one of the two scalings.", "proven"
        )
    return None


def _adds_learned(behind: list[Op], product: Op) -> bool:
    """A bias that is learned is added to the scores: they have a scale of their own."""
    after = [o for o in behind if o.index > product.index and o.name in ("add", "add_")]
    return any(
        len(o.inputs) > 1 and o.inputs[0].requires_grad and o.inputs[1].requires_grad for o in after
    )


def _in_the_weights(product: Op, root: float) -> bool:
    """Queries are smaller than keys by the factor itself: their weights were drawn so, as in T5."""
    small, large = sorted(v.std or 0.0 for v in product.inputs[-2:])
    return small > 0.0 and small / large < 1.3 / root


def _projected(flow: Flow, product: Op) -> bool:
    """Both operands come out of learned projections, directly or after a rotation or a scaling."""
    through = FORMING | frozenset(_SCALING)
    makers = [flow.origin(v, product.index, through)[1] for v in product.inputs[-2:]]
    return all(
        m is not None
        and m.name
        in ("linear", "matmul", "einsum", "conv1d", "conv2d", "addmm", "add", "cat", "stack")
        for m in makers
    )


def _finding(
    deep: DeepStep, attention: Attention, op: Op, text: str, ratio: float, fix: str, status: str
) -> Finding:
    return Finding(
        "model.attention-scale",
        status,
        0.94 if status != "suspected" else 0.4,
        "Attention scores have the wrong scale",
        places(op.site, attention.site),
        (Evidence(text, "attention", (deep.step,), ratio, 1.0),),
        Fix(fix),
    )

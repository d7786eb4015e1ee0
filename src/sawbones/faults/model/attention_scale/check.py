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
Two scalings on the way to the same scores are the proof. A missing division is measured on the
scores themselves, which makes it likely, and suspected while they spread by less than 0.8.

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
from dataclasses import replace

from sawbones.evidence import NothingToJudge, compared, exact, finding
from sawbones.evidence.limits import model as limits
from sawbones.schema import Attention, Evidence, Finding, Fix, Op, Run
from sawbones.stats.sequences import attention_ops
from sawbones.trace.graph import StepGraph
from sawbones.trace.locate import locate
from sawbones.trace.operators import FORMING

NEEDS = ("attention", "ops")
EXPLAINS = ("model.vanishing-gradients", "optimizer.lr-too-low")
EXPERIMENT = None
MIN_HEAD_WIDTH = 4  # below it the root is so near to 1 that the scale hardly matters
LAST_FIRST_STEP = 2  # later on the weights have grown to whatever scale there is
_PRODUCTS = ("matmul", "bmm", "einsum", "baddbmm")
_SCALING = ("mul", "div", "mul_", "div_")
_PROJECTING = ("linear", "matmul", "addmm", "conv1d", "conv2d")

_Said = tuple[Op, Evidence, str]  # where it is done, the reading, the fix


def check(run: Run) -> Iterator[Finding]:
    deep = run.deep[0]
    if deep.step > LAST_FIRST_STEP:
        raise NothingToJudge("the first steps were not recorded in depth")
    judged = [
        (attention, op)
        for attention, op in attention_ops(deep)
        if attention.head_dim >= MIN_HEAD_WIDTH and attention.kind != "mha"
    ]
    if not judged:
        raise NothingToJudge("no attention sets its own scale")
    graph = StepGraph(deep)
    for attention, op in judged:
        if attention.kind == "sdpa":
            said = _twice(graph, attention, op) or _told_wrong(graph, attention, op)
        else:
            said = _by_hand(graph, attention, op)
        if said is not None:
            at, reading, fix = said
            yield finding(
                "Attention scores have the wrong scale",
                locate(at, attention),
                (replace(reading, steps=(deep.step,)),),
                Fix(fix),
            )
            return


def _near(value: float, expected: float) -> bool:
    return limits.SCALE_OFF.kept_by(abs(value / expected - 1))


def _number(op: Op | None) -> float | None:
    """The constant that an operator multiplies by."""
    if op is None or op.name not in _SCALING:
        return None
    number = op.args.get("other")
    if not isinstance(number, (int, float)) and len(op.inputs) == 2 and op.inputs[1].shape == ():
        number = op.inputs[1].mean
    if not isinstance(number, (int, float)) or not number:
        return None
    return 1 / number if op.name.strip("_").startswith(("div", "truediv")) else float(number)


def _scaled_twice(text: str, ratio: float) -> Evidence:
    return exact(text, ratio, expected=1, within=limits.SCALE_OFF.value, signal="attention")


def _not_divided(text: str, spread: float, ratio: float) -> Evidence:
    return compared(text, spread, limits.SCORE_SPREAD, expected=spread / ratio, signal="attention")


def _twice(graph: StepGraph, attention: Attention, op: Op) -> _Said | None:
    inner = op.args.get("scale")
    root = math.sqrt(attention.head_dim)
    if isinstance(inner, (int, float)) and not _near(inner, 1 / root):
        return None
    for value in op.inputs[:2]:
        made = graph.origin(value, op.index)[1]
        factor = _number(made)
        if made is not None and factor is not None and _near(factor, 1 / root):
            text = (
                f"queries or keys are multiplied by {factor:.4g}, and the attention divides by "
                f"sqrt({attention.head_dim}) again"
            )
            fix = "Remove one of the two scalings (or pass scale=1.0)."
            return made, _scaled_twice(text, 1 / root), fix
    return None


def _told_wrong(graph: StepGraph, attention: Attention, op: Op) -> _Said | None:
    """The fused attention is told not to divide (or to multiply), and nothing before it made the
    queries or keys smaller.
    """
    scale, spread, root = op.args.get("scale"), attention.score_std, math.sqrt(attention.head_dim)
    if not isinstance(scale, (int, float)) or not spread:
        return None
    if not _near(scale, 1) and not _near(scale, root):
        return None
    makers = [graph.origin(v, op.index)[1] for v in op.inputs[:2]]
    if any(m is None or m.name not in _PROJECTING for m in makers):
        return None  # normalised, rotated or scaled by something: these have a scale of their own
    biased = len(op.inputs) > 3 and op.inputs[3].requires_grad
    own_scale = biased or _in_the_weights(op.inputs[0].std, op.inputs[1].std, root, unknown=True)
    if own_scale and not limits.SCORES_PEAKED.reached_by(spread):
        return None
    text = (
        f"the attention is told scale={scale:.4g} where 1/sqrt({attention.head_dim}) is "
        f"{1 / root:.4g}: scores spread by {spread:.3g}, entropy is {attention.entropy:.2f} of its "
        "maximum"
    )
    fix = "Leave scale out: it is 1/sqrt(head width) by itself."
    return op, _not_divided(text, spread, scale * root), fix


def _by_hand(graph: StepGraph, attention: Attention, op: Op) -> _Said | None:
    spread, expected = attention.score_std, attention.expected_score_std
    behind = list(graph.behind(op.inputs[0], op.index, 16))
    product = next((o for o in behind if o.name in _PRODUCTS), None)
    if not spread or not expected or product is None or not _projected(graph, product):
        return None
    if not attention.mask.get("axis_is_keys", True):
        return None
    root, ratio = math.sqrt(attention.head_dim), spread / expected
    peaked = limits.SCORES_PEAKED.reached_by(spread)
    if not peaked and _adds_learned(behind, product):
        return None
    if _near(ratio, root) or _near(ratio, attention.head_dim):
        queries, keys = product.inputs[-2:]
        if not peaked and _in_the_weights(queries.std, keys.std, root):
            return None
        text = (
            f"scores spread by {spread:.3g}, {ratio:.3g} times what the division by "
            f"sqrt({attention.head_dim}) would give; attention entropy is {attention.entropy:.2f} "
            "of its maximum"
        )
        fix = "Divide the scores by the square root of the head's width."
        return product, _not_divided(text, spread, ratio), fix
    before = [graph.origin(v, product.index)[1] for v in product.inputs[:2]]
    after = [o for o in behind if o.index > product.index]
    scalings = [o for o in (*before, *after) if o is not None and _number(o) is not None]
    if not _near(ratio, 1 / root) or len(scalings) < 2:
        return None
    text = (
        f"the scores are scaled {len(scalings)} times and spread by {spread:.3g}, {ratio:.3g} of "
        "what they should"
    )
    return scalings[0], _scaled_twice(text, ratio), "Remove one of the two scalings."


def _adds_learned(behind: list[Op], product: Op) -> bool:
    """A bias that is learned is added to the scores: they have a scale of their own."""
    after = [o for o in behind if o.index > product.index and o.name in ("add", "add_")]
    return any(len(o.inputs) > 1 and all(v.requires_grad for v in o.inputs[:2]) for o in after)


def _in_the_weights(
    queries: float | None, keys: float | None, root: float, *, unknown: bool = False
) -> bool:
    """Queries are smaller than keys by the factor itself: their weights were drawn so, as in T5."""
    if not queries or not keys:
        return unknown
    smaller = min(queries / keys, keys / queries)
    return limits.DRAWN_SMALLER.undercut_by(smaller * root)


def _projected(graph: StepGraph, product: Op) -> bool:
    """Both operands come out of learned projections, directly or after a rotation or a scaling."""
    through = FORMING | frozenset(_SCALING)
    makers = [graph.origin(v, product.index, through)[1] for v in product.inputs[-2:]]
    sources = (*_PROJECTING, "einsum", "add", "cat", "stack")
    return all(m is not None and m.name in sources for m in makers)

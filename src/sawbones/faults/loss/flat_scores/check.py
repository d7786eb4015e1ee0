"""Scores that lie so close together that the loss cannot fall

## What it sees
On deep steps, a cross-entropy whose scores are products of rows of length 1 (cosine similarities),
by values: the root mean square of both factors is one over the root of their width. Cosines lie in
[-1, 1], and what the scores are multiplied by bounds their range. Fires when, even with the best
cosines, the loss could not fall under 80 % of that of an even guess, on every deep step. From step
0.

## Why it matters
The softmax stays nearly even, so every wrong answer pulls about as much as any other: hard cases do
not count more, and the loss says nothing about how good the model is.

## Looks like
A contrastive loss that stands at log(batch size) while retrieval gets better; smaller temperatures
make it worse.

## Example
    logits = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T * temperature
    loss = F.cross_entropy(logits, torch.arange(len(a)))

## Use instead
    logits = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T / temperature
    loss = F.cross_entropy(logits, torch.arange(len(a)))

## Confirm it
The bound follows from the length of the rows and the factor; nothing is left to confirm.

## False alarms
Scores of a linear layer grow with its weights and are not bounded. Cosines divided by a temperature
up to 1, and heads that scale them, leave enough room. Two or three classes are reached with any
factor of one half or more.

## References
Chen et al., SimCLR (2020), table 5: the temperature matters, 0.1 being best; Radford et al., CLIP
(2021): the logits are scaled up by a learned factor, at most 100.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, compared, finding
from sawbones.evidence.limits import loss as limits
from sawbones.schema import Finding, Fix, Op, Run, Value
from sawbones.stats.loss_calls import Seen, reaching
from sawbones.trace.graph import StepGraph
from sawbones.trace.locate import locate
from sawbones.trace.operators import FORMING

NEEDS = ("loss_calls", "ops")
EXPLAINS = ("optimizer.lr-too-low", "evaluation.collapsed-prediction")
EXPERIMENT = None
PREVIEW = True
MIN_WIDTH = 4  # entries of a row: of fewer any row may have length 1 by chance
_PRODUCTS = frozenset({"matmul", "mm", "bmm", "einsum", "linear", "rmatmul"})
_SCALING = FORMING | {"mul", "div"}


def check(run: Run) -> Iterator[Finding]:
    calls = [s for s in reaching(run) if s.call.fn == "cross_entropy" and s.is_finite]
    cosines = [(seen, product) for seen in calls if (product := _cosines(seen)) is not None]
    if not cosines:
        raise NothingToJudge("no cross-entropy of products of rows of length 1 was called")
    site = cosines[0][0].call.site
    here = [(seen, product) for seen, product in cosines if seen.call.site == site]
    reached = [_lowest(seen, product) for seen, product in here]
    if not reached or not all(map(limits.LOSS_OUT_OF_REACH.reached_by, reached)):
        return
    seen, product = here[-1]
    even = math.log(seen.number("num_classes"))
    scaled = seen.maker()
    yield finding(
        "Cosine similarities are too close together for the softmax: the loss cannot fall",
        locate(scaled, product, site),
        (
            compared(
                f"scores of rows of length 1 lie within {2 * _factor(seen, product):.3g} of each "
                f"other, so the loss cannot fall under {min(reached) * even:.3g}; an even guess "
                f"has {even:.3g}, and it is {seen.call.value or math.nan:.4g} at step "
                f"{seen.deep.step}, where {seen.number('accuracy'):.0%} are answered right",
                min(reached),
                limits.LOSS_OUT_OF_REACH,
                expected=0,
                signal="loss_calls",
                steps=[s.deep.step for s, _ in here],
            ),
        ),
        Fix("Divide the similarities by the temperature (0.05 to 0.5) instead of multiplying."),
    )


def _cosines(seen: Seen) -> Op | None:
    """The product behind the scores, where both factors are rows of length 1."""
    if seen.number("num_classes") < 2:
        return None
    *_, (_, op) = StepGraph(seen.deep).way(seen.call.input, seen.call.op, _SCALING, _as_wide)
    if op is None or op.name not in _PRODUCTS:
        return None
    factors = [v for v in op.inputs if len(v.shape) >= 2]
    return op if len(factors) == 2 and _are_unit(factors) else None


def _as_wide(op: Op) -> Value | None:
    size = math.prod(op.outputs[0].shape)
    return next((v for v in op.inputs if v.shape and math.prod(v.shape) == size), None)


def _are_unit(factors: list[Value]) -> bool:
    one, other = factors
    widths = {one.shape[-1]} & set(other.shape[-2:])
    return any(width >= MIN_WIDTH and all(_is_unit(v, width) for v in factors) for width in widths)


def _is_unit(value: Value, width: int) -> bool:
    if value.std is None or value.mean is None:
        return False
    length = math.hypot(value.mean, value.std) * math.sqrt(width)
    return limits.UNIT_LENGTH.kept_by(abs(length - 1))


def _factor(seen: Seen, product: Op) -> float:
    """What the cosines were multiplied by."""
    largest = max(abs(product.outputs[0].min or 0), abs(product.outputs[0].max or 0))
    shown = max(abs(seen.number("input_min")), abs(seen.number("input_max")))
    return shown / largest if largest else math.inf


def _lowest(seen: Seen, product: Op) -> float:
    """The loss with the right answer at the top of the range and all others at its bottom, over
    that of an even guess.
    """
    classes = seen.number("num_classes")
    room = 2 * _factor(seen, product)
    return math.log1p((classes - 1) * math.exp(-room)) / math.log(classes)

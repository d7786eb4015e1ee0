"""Scores that lie so close together that the loss cannot fall

## What it sees
On deep steps, a cross-entropy whose scores are products of rows of length 1 (cosine similarities),
by values: the root mean square of both factors is one over the root of their width. Cosines lie in
[-1, 1], and what the scores are multiplied by bounds their range. Fires when, even with the best
cosines, the loss could not fall under 80 % of that of an even guess, on every deep step. Masks and
terms that are not learned (the popularity of an item, a margin) may be added to the scores: the
loss is then held against its own value, from which it can move by no more than four times the
factor. From step 0.

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
factor of one half or more. A factor or a term that is learned can grow: nothing bounds the scores.

## References
Chen et al., SimCLR (2020), table 5: the temperature matters, 0.1 being best; Radford et al., CLIP
(2021): the logits are scaled up by a learned factor, at most 100.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

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
MIN_WIDTH = 4  # entries of a row: of fewer any row may have length 1 by chance
_PRODUCTS = frozenset({"matmul", "mm", "bmm", "einsum", "linear", "rmatmul"})
_SCALING = frozenset({"mul", "div"})
_ADDING = frozenset({"add", "sub", "masked_fill", "where"})
_ON_THE_WAY = FORMING | _SCALING | _ADDING


@dataclass(frozen=True)
class _Scores:
    """Cosines on their way into a cross-entropy."""

    seen: Seen
    product: Op
    factor: float  # what they were multiplied by
    scaled: Op | None  # where
    moved: bool  # something that is not learned was added, or put in their place

    @property
    def lowest(self) -> float:
        """The loss with the right answer at the top of the range and all others at its bottom, over
        that of an even guess. With terms of their own, no score moves against another by more than
        four times the factor, and the loss by no more than that.
        """
        if self.moved:
            value = self.seen.call.value or 0
            return (value - 4 * self.factor) / value if value > 0 else 0
        classes = self.seen.number("num_classes")
        return math.log1p((classes - 1) * math.exp(-2 * self.factor)) / math.log(classes)

    @property
    def even(self) -> float:
        """What the lowest loss is held against."""
        value = self.seen.call.value or 0
        return value if self.moved else math.log(self.seen.number("num_classes"))


def check(run: Run) -> Iterator[Finding]:
    calls = [s for s in reaching(run) if s.call.fn == "cross_entropy" and _is_number(s.call.value)]
    cosines = [scores for seen in calls if (scores := _cosines(seen)) is not None]
    if not cosines:
        raise NothingToJudge("no cross-entropy of products of rows of length 1 was called")
    site = cosines[0].seen.call.site
    here = [scores for scores in cosines if scores.seen.call.site == site]
    reached = [scores.lowest for scores in here]
    if not all(map(limits.LOSS_OUT_OF_REACH.reached_by, reached)):
        return
    last = here[-1]
    seen, lowest = last.seen, min(scores.lowest * scores.even for scores in here)
    guess = "" if last.moved else f"; an even guess has {last.even:.3g}"
    yield finding(
        "Cosine similarities are too close together for the softmax: the loss cannot fall",
        locate(last.scaled, last.product, site),
        (
            compared(
                f"scores of rows of length 1 lie within {2 * last.factor:.3g} of each "
                f"other, so the loss cannot fall under {lowest:.3g}{guess}; it is "
                f"{seen.call.value:.4g} at step {seen.deep.step}, where "
                f"{seen.number('accuracy'):.0%} are answered right",
                min(reached),
                limits.LOSS_OUT_OF_REACH,
                expected=0,
                signal="loss_calls",
                steps=[scores.seen.deep.step for scores in here],
            ),
        ),
        Fix("Divide the similarities by the temperature (05 to 0.5) instead of multiplying."),
    )


def _is_number(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _cosines(seen: Seen) -> _Scores | None:
    """The product behind the scores, where both factors are rows of length 1."""
    if seen.number("num_classes") < 2:
        return None
    way = list(StepGraph(seen.deep).way(seen.call.input, seen.call.op, _ON_THE_WAY, _learned))
    *passed, (_, product) = way
    if product is None or product.name not in _PRODUCTS:
        return None
    factors = [v for v in product.inputs if len(v.shape) >= 2]
    if len(factors) != 2 or not _are_unit(factors):
        return None
    scaling = [op for _, op in passed if op is not None and op.name in _SCALING]
    moved = any(op is not None and op.name in _ADDING for _, op in passed)
    factor = math.prod(_growth(op) for op in scaling)
    return _Scores(seen, product, factor, next(iter(scaling), None), moved)


def _learned(op: Op) -> Value | None:
    """The one input that is learned, as wide as what is made of it; None where there is another."""
    learned = [v for v in op.inputs if v.requires_grad]
    size = math.prod(op.outputs[0].shape)
    alone = len(learned) == 1 and math.prod(learned[0].shape) == size
    return learned[0] if alone else None


def _growth(op: Op) -> float:
    """How much wider the values are that an operator makes of its learned input."""
    given = _learned(op)
    before = _largest(given) if given is not None else 0
    return _largest(op.outputs[0]) / before if before else math.inf


def _largest(value: Value) -> float:
    return max(abs(value.min or 0), abs(value.max or 0))


def _are_unit(factors: list[Value]) -> bool:
    one, other = factors
    widths = {one.shape[-1]} & set(other.shape[-2:])
    return any(width >= MIN_WIDTH and all(_is_unit(v, width) for v in factors) for width in widths)


def _is_unit(value: Value, width: int) -> bool:
    if value.std is None or value.mean is None:
        return False
    length = math.hypot(value.mean, value.std) * math.sqrt(width)
    return limits.UNIT_LENGTH.kept_by(abs(length - 1))

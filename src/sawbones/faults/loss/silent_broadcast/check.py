"""Prediction and target of different shapes that broadcast against each other

## What it sees
The shapes that meet in an element-wise loss (mse, l1, smooth l1, huber, binary cross-entropy; or a
difference that is squared by hand). Fires when one has one dimension more, of size 1, and together
they make more elements than either has: (B, 1) against (B,) gives B x B pairs. The same for one
loss per example and its weight, and for two terms of the prediction itself, where the B x B answers
then meet B targets. From step 0.

## Why it matters
Every prediction is compared with every target. The best answer is then the mean of all targets,
whatever the input.

## Looks like
Loss gets stuck at the variance of the targets; all predictions become equal. Torch warns once for
mse_loss and not at all for differences by hand.

## Example
    prediction = model(x)                  # (B, 1)
    loss = ((prediction - y) ** 2).mean()  # y: (B,)

## Use instead
    prediction = model(x).squeeze(-1)
    loss = ((prediction - y) ** 2).mean()

## Confirm it
The shapes are the proof: the loss is taken over more pairs than there are targets.

## False alarms
A constant target, one weight per row and targets of shape (B, 1) against (B, C) make no more
elements than the larger one has. Pairwise losses (contrastive, quantile) bring both sides to the
same number of dimensions on purpose. A matrix of distances or similarities may be a sum of a row
and a column; it has no single target per example. A batch of one has nothing to mix.

## References
The "Using a target size that is different to the input size" warning of torch; a classic of
regression heads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from sawbones.evidence import exact, finding
from sawbones.schema import Finding, Fix, Op, Run, Value
from sawbones.stats.loss_calls import Seen, reaching, user_sites
from sawbones.trace.graph import StepGraph
from sawbones.trace.locate import locate

NEEDS = ("loss_calls",)
EXPLAINS = (
    "evaluation.collapsed-prediction",
    "loss.wrong-loss",
    "data.labels-misaligned",
    "optimizer.lr-too-low",
    "model.cross-sample-leak",
    "loss.reduction-sum",
)
EXPERIMENT = None

_ELEMENTWISE = frozenset(
    {
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
        "poisson_nll_loss",
        "gaussian_nll_loss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "soft_margin_loss",
    }
)
_ARITHMETIC = frozenset({"add", "sub", "rsub", "mul", "div", "add_", "sub_", "mul_", "div_"})
_SHAPING = frozenset(
    {
        "__getitem__",
        "squeeze",
        "unsqueeze",
        "view",
        "reshape",
        "flatten",
        "index_select",
        "stack",
        "tensor",
        "to",
        "float",
    }
)


def check(run: Run) -> Iterator[Finding]:
    mixed = [seen for seen in reaching(run) if _is_mixed(seen)]
    if not mixed:
        yield from _weighted(run)
        yield from _answers(run)
        return
    seen = mixed[0]
    target = seen.call.target
    assert target is not None
    a, b = seen.call.input.shape, target.shape
    together = _together(a, b) or ()
    made = [s for f in mixed for s in user_sites(f.deep, _SHAPING, f.call.target, f.call.op)]
    # A loss in a function of its own is right; the shapes go wrong where it is called.
    call = seen.call.site
    outside = [s for s in made if call is not None and s.function != call.function]
    yield finding(
        f"Prediction {_text(a)} and target {_text(b)} broadcast to {_text(together)}",
        locate(*(outside[:1] or (call,)), seen.facts.input_made_at, call),
        (
            exact(
                f"the loss is taken over {math.prod(together)} pairs of prediction and target, "
                f"although there are {math.prod(b)} targets",
                math.prod(together),
                expected=math.prod(b),
                signal="loss_calls",
                steps=[s.deep.step for s in mixed],
            ),
        ),
        Fix(
            "Give both the same shape before the loss: squeeze the prediction's last "
            "dimension, or unsqueeze the target's."
        ),
    )


def _weighted(run: Run) -> Iterator[Finding]:
    """One loss per example times one weight per example, in shapes that make every pair of the
    two.
    """
    for seen in reaching(run):
        call = StepGraph(seen.deep, with_no_grad=True).at(seen.call.op)
        losses = {v.id for v in (call.outputs if call else ()) if len(v.shape) <= 2}
        for op in seen.deep.ops:
            pair = _paired(op, losses) if op.index > seen.call.op else None
            if pair is None:
                continue
            a, b = pair
            size = math.prod(a.shape)
            yield finding(
                f"Losses {_text(a.shape)} and their weights {_text(b.shape)} broadcast to "
                f"{_text(op.outputs[0].shape)}",
                locate(op, seen.call),
                (
                    exact(
                        f"{size} losses {_text(a.shape)} times {size} weights {_text(b.shape)} "
                        f"make {size * size} products",
                        size * size,
                        expected=size,
                        signal="ops",
                        steps=(seen.deep.step,),
                    ),
                ),
                Fix(
                    "Give the losses and their weights the same shape: squeeze the last "
                    "dimension of the one that has it."
                ),
            )
            return


def _answers(run: Run) -> Iterator[Finding]:
    """Two terms of the prediction, one number per example each, make every pair of the two; there
    is one target per example.
    """
    for seen in reaching(run):
        size = _targets_of_pairs(seen)
        if not size:
            continue
        graph = StepGraph(seen.deep, with_no_grad=True)
        for op in graph.behind(seen.call.input, seen.call.op, follow=partial(_of_size, size)):
            if not _crosses(op, size) or any(graph.maker(v, op.index) is None for v in op.inputs):
                continue
            a, b = (_text(v.shape) for v in op.inputs)
            column = [v for v in op.inputs if len(v.shape) == 2]
            yield finding(
                f"Two terms of the prediction, {a} and {b}, broadcast to {_text((size, size))}",
                locate(op, *(graph.maker(v, op.index) for v in column), seen.call),
                (
                    exact(
                        f"{op.name} of {a} and {b} makes {size * size} answers, which are compared "
                        f"with {size} targets",
                        size * size,
                        expected=size,
                        signal="ops",
                        steps=(seen.deep.step,),
                    ),
                ),
                Fix(
                    "Give both terms the same shape before they meet: leave out keepdim=True, or "
                    "squeeze the last dimension."
                ),
            )
            return


def _targets_of_pairs(seen: Seen) -> int:
    """The number of targets, where each of them meets that many answers."""
    call = seen.call
    if call.target is None or call.fn not in _ELEMENTWISE or call.target.requires_grad:
        return 0
    size = math.prod(call.target.shape)
    one_each = call.target.shape in ((size,), (size, 1))
    return size if size >= 2 and one_each and call.input.shape == (size, size) else 0


def _of_size(size: int, op: Op) -> Iterator[Value]:
    return (v for v in op.inputs if v.shape == (size, size))


def _crosses(op: Op, size: int) -> bool:
    shapes = sorted((v.shape for v in op.inputs), key=len)
    return op.name in _ARITHMETIC and shapes == [(size,), (size, 1)]


def _paired(op: Op, losses: set[int]) -> tuple[Value, Value] | None:
    """(losses, weights) of which this operator makes every pair."""
    if op.name not in ("mul", "div") or len(op.inputs) != 2 or not op.outputs:
        return None
    a, b = sorted(op.inputs, key=lambda v: v.id not in losses)
    size = math.prod(a.shape)
    every_pair = size >= 2 and op.outputs[0].shape == (size, size)
    forms = {len(a.shape), len(b.shape)} == {1, 2} and _same_but_for_ones(a.shape, b.shape)
    return (a, b) if a.id in losses and not b.requires_grad and every_pair and forms else None


def _same_but_for_ones(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return [n for n in a if n != 1] == [n for n in b if n != 1]


def _is_mixed(seen: Seen) -> bool:
    call = seen.call
    if call.target is None or call.fn not in _ELEMENTWISE:
        return False
    if not call.input.requires_grad or call.target.requires_grad:
        return False
    a, b = call.input.shape, call.target.shape
    together = _together(a, b)
    if together is None or abs(len(a) - len(b)) != 1:
        return False
    # Broadcasting never makes fewer elements than the larger of the two has.
    return _same_but_for_ones(a, b) and math.prod(together) not in (math.prod(a), math.prod(b))


def _together(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    size = max(len(a), len(b))
    wide = [(1,) * (size - len(s)) + tuple(s) for s in (a, b)]
    if any(m != n and 1 not in (m, n) for m, n in zip(*wide, strict=True)):
        return None
    return tuple(max(m, n) for m, n in zip(*wide, strict=True))


def _text(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + (",)" if len(shape) == 1 else ")")

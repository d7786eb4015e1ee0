"""Prediction and target of different shapes that broadcast against each other

## What it sees
The shapes that meet in an element-wise loss (mse, l1, smooth l1, huber, binary cross-entropy; or a
difference that is squared by hand). Fires when one has one dimension more, of size 1, and together
they make more elements than either has: (B, 1) against (B,) gives B x B pairs. The same anywhere
else on the way to the loss: two terms of the prediction, reward and next value of a target, a loss
per example and its weight, where all that becomes of the B x B values is taken element by element
up to their mean. From step 0.

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
same number of dimensions on purpose, or add the axis where the pairs are made. A matrix of
distances or similarities may be a sum of a row and a column; it meets other matrices, or one of its
axes is summed, sorted or masked by itself. A batch of one has nothing to mix.

## References
The "Using a target size that is different to the input size" warning of torch; a classic of
regression heads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from sawbones.evidence import exact, finding
from sawbones.schema import Finding, Fix, Run
from sawbones.stats.loss_calls import Seen, reaching, user_sites
from sawbones.stats.pair_tables import mixed_tables
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
        yield from _pairs(run)
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


def _pairs(run: Run) -> Iterator[Finding]:
    """Two vectors with one number per example make every pair of the two, before the loss or behind
    it.
    """
    for deep in run.deep:
        losses = [seen.call for seen in reaching(run) if seen.deep is deep]
        for table in mixed_tables(deep, losses):
            size = table.size
            a, b = (_text(v.shape) for v in table.op.inputs)
            then = f", which are set against {_text(table.met.shape)}" if table.met else ""
            yield finding(
                f"{a} and {b} broadcast to {_text((size, size))}: one number per example each",
                locate(table.op, *table.made, *losses),
                (
                    exact(
                        f"{table.op.name} of {a} and {b} makes {size * size} values{then}; "
                        "the loss goes over all of them",
                        size * size,
                        expected=size,
                        signal="ops",
                        steps=(deep.step,),
                    ),
                ),
                Fix(
                    "Give both the same shape before they meet: leave out keepdim=True or squeeze "
                    "the last dimension of one, or keep it in both."
                ),
            )
            return


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

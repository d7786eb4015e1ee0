"""A division by a variance or a norm that nothing keeps away from zero

## What it sees
A run whose values or weights turned non-finite, and a normalisation written by hand in it: a
reciprocal root or a division whose divisor is a variance, a standard deviation, a norm or a mean of
squares, with no epsilon added and no clamp. Fires when the first non-finite value comes out of that
division, out of its gradient (the weights are already spoiled at the next step), out of the
gradient of a root of such a spread, whatever is added behind the root, or when a module has eps=0.

## Why it matters
Any constant row, padded position or dead channel has variance 0: one of them is enough for NaN in
all weights.

## Looks like
Loss is NaN from one step to the next, with normal values before; gone with another batch order.

## Example
    return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True))

## Use instead
    return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)

## Confirm it
The first non-finite operator, or the finite loss one step before the weights were spoiled, together
with the unguarded division.

## False alarms
Unguarded divisions in a run that stays finite are silent. A learning rate that is too high lets
losses and gradients grow before they overflow; here the loss is normal right before.

## References
nn.LayerNorm, BatchNorm and RMSNorm all carry eps for this reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sawbones.evidence import compared, context, exact, finding
from sawbones.evidence.limits import model as limits
from sawbones.schema import Finding, Fix, Op, Run
from sawbones.stats.failures import Birth, first_nonfinite, rooted, spoiled_before, unguarded
from sawbones.trace.graph import StepGraph
from sawbones.trace.locate import locate

NEEDS = ("deep", "ops")
USES = ("nonfinite",)
EXPLAINS = (
    "optimizer.lr-too-high",
    "loss.value-range",  # of values that are no numbers any more
    "loss.unstable-log",
    "loop.exploding-gradients",
    "loop.loss-spike",
    "data.nonfinite-input",
    "data.degenerate-samples",
    "loop.amp-no-scaler",
)
EXPERIMENT = None
_DIVIDING = ("rsqrt", "div", "reciprocal", "sqrt", "pow", "std", "norm", "mul", "rdiv", "var")


def check(run: Run) -> Iterator[Finding]:
    birth = first_nonfinite(run)
    if birth is None:
        return
    candidates: dict[object, tuple[Op, str]] = {}
    roots: dict[object, tuple[Op, str]] = {}
    for deep in run.deep:
        graph = StepGraph(deep, with_no_grad=True)
        for known, pairs in ((candidates, unguarded(graph)), (roots, rooted(run, graph))):
            for op, made in pairs:
                known.setdefault(op.site, (op, made))
    given_bad = any(value.nonfinite for value in birth.inputs)
    divides = birth.op in _DIVIDING
    if birth.phase == "backward" and birth.site in roots and not given_bad:
        yield _root_without_slope(run, birth, *roots[birth.site])
        return
    here = candidates.get(birth.site) if divides and not given_bad else None
    if here is None and (candidates or roots) and _calm_before(run, birth.step):
        backward = birth.phase == "backward" and not divides
        if spoiled_before(birth) or backward:
            here = next(iter((candidates or roots).values()))
    if here is None:
        yield from _module_without_eps(run, birth.step)
        return
    op, made = here
    verb = "divides by" if op.site in candidates else "takes the root of"
    before = float(run.losses[max(birth.step - 1, 0)]) if len(run.losses) else math.nan
    yield finding(
        "A normalisation divides by a spread that can be zero",
        locate(op),
        (
            context(
                f"{op.name} at {op.site} {verb} {made} of the values, nothing is added to it",
                signal="ops",
                steps=(run.deep[0].step,),
            ),
            exact(
                f"first non-finite value at step {birth.step} ({birth.op}); the loss one "
                f"step before was {before:.4g}",
                1,  # values that are not finite
                signal="nonfinite",
                steps=(birth.step,),
            ),
        ),
        Fix("Add a small epsilon under the root (or to the divisor), such as 1e-5."),
        at_most="proven" if op.site == birth.site else "likely",
    )


def _root_without_slope(run: Run, birth: Birth, op: Op, made: str) -> Finding:
    """An epsilon behind the root keeps the division finite, and not its gradient."""
    low = min((v.min for v in birth.inputs if v.min is not None), default=0)
    return finding(
        "A root is taken of a spread that is zero: it has no slope there",
        locate(op),
        (
            exact(
                f"at step {birth.step} {birth.op} was given {made} of the values, all finite and "
                f"as small as {low:g}, and its gradient is not finite",
                1,  # gradients that are not finite
                signal="ops",
                steps=(birth.step,),
            ),
        ),
        Fix("Add the epsilon under the root, such as 1e-5, not behind it."),
    )


def _calm_before(run: Run, step: int) -> bool:
    """Losses were finite and not growing until then."""
    losses = np.asarray(run.losses[: max(step, 1)], np.float64)
    if not len(losses) or not np.isfinite(losses[-1]):
        return len(losses) == 1
    usual = abs(float(np.median(losses[np.isfinite(losses)]))) + 1 / limits.LOSS_CALM.value
    return limits.LOSS_CALM.kept_by(float(losses[-1]) / usual)


def _module_without_eps(run: Run, step: int) -> Iterator[Finding]:
    for module in run.modules:
        eps = module.settings.get("eps")
        if not isinstance(eps, (int, float)) or "Norm" not in module.cls:
            continue
        if limits.NO_EPSILON.undercut_by(eps):
            text = (
                f"{module.cls} {module.path} has eps={eps:g}; first non-finite value at step {step}"
            )
            yield finding(
                "A normalisation has no epsilon",
                locate(module.built),
                (
                    compared(
                        text, eps, limits.NO_EPSILON, below=True, signal="modules", steps=(step,)
                    ),
                ),
                Fix("Give the normalisation an eps such as 1e-5."),
            )
            return

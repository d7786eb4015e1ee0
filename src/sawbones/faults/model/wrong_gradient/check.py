"""A backward pass written by hand that is not the derivative of its forward pass

## What it sees
Every `torch.autograd.Function` of the script at its first call with gradients under `diagnose`, and
again where an input asks for a gradient that did not before: the slope along each coordinate of a
small input, or along six random directions of a large one, as autograd gives it and as differences
of the forward pass in float64 give it. They must agree; it fires when one is off by more than one
part in ten thousand, at step 0.

## Why it matters
The optimizer follows a direction that is not downhill. The loss falls more slowly, stalls, or
climbs, and nothing says so: shapes and dtypes fit.

## Looks like
Training that works with the built-in operation and not with the hand-written one; a loss that stays
up although the model is right.

## Example
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * x**2

## Use instead
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 3 * x**2

## Confirm it
The reading itself is exact. `sawbones try gradient-check train.py` repeats it, with the layers and
loss modules of the script too.

## False alarms
Gradient reversal and gradient scaling pass their input through unchanged, and straight-through
estimates stand behind a forward pass that is flat almost everywhere: their gradient is meant to
differ, and they stay silent. An input that asks for no gradient (a target, a mask, a fixed
adjacency) is a constant: None for it is right. A point on an edge of the function (ReLU at 0) is passed over, and a
forward pass that cannot run in float64 could not be looked at.

## References
PyTorch's documentation of torch.autograd.gradcheck: "check gradients computed via small finite
differences against analytical gradients".
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.evidence.limits import gradients as limits
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.schema.one_off import OwnGradient

NEEDS = ("own_gradients",)
EXPLAINS = ("optimizer.lr-too-low", "optimizer.lr-too-high", "data.labels-misaligned")
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    measured = [row for row in run.own_gradients if row.error is not None]
    if not measured:
        whys = "; ".join(f"{row.cls}: {row.failed}" for row in run.own_gradients[:3])
        raise NothingToJudge(f"no backward pass of the script's own could be compared ({whys})")
    for row in measured:
        meant = row.passes_through or row.flat or row.kink
        if not meant and limits.RELATIVE_ERROR.passed_by(row.error):
            yield _wrong(row)


def _wrong(row: OwnGradient) -> Finding:
    site = Site(row.file, row.line, "backward", row.code)
    return finding(
        f"The backward pass of {row.cls} is not the derivative of its forward pass",
        (site,),
        (
            exact(
                f"{row.cls}: slope {row.autograd:.6g} from its backward pass, "
                f"{row.differences:.6g} from differences of its forward pass "
                f"({row.compared} slopes compared, {_how(row)})",
                row.autograd,
                expected=row.differences,
                within=limits.RELATIVE_ERROR.times(abs(row.differences)),
                signal="own_gradients",
                steps=(0,),
            ),
        ),
        Fix(
            f"Derive the backward pass of {row.cls} again, and keep "
            "torch.autograd.gradcheck on it as a test."
        ),
    )


def _how(row: OwnGradient) -> str:
    """The shape of the mistake, where one number says it."""
    ratio = row.autograd / row.differences if row.differences else None
    if ratio is None:
        return "the forward pass does not change along it"
    if limits.RELATIVE_ERROR.kept_by(abs(ratio + 1)):
        return "the sign is turned"
    return f"{ratio:.4g} times what it should be along the worst of them"

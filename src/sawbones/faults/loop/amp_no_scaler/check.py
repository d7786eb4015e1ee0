"""Float16 without loss scaling, so that small gradients round to zero

## What it sees
Operators of a training forward pass that give float16 results with a gradient, backward passes
whose root no scaler has multiplied, and gradients of which a good part is exactly zero (or not
finite) at the first steps, or a hundredth of one large tensor's at any step. Embedding tables do
not count: rows of absent tokens have no gradient anyway. The earliest is step 0; whether the zeros
come from float16 is for the experiment.

## Why it matters
Float16 ends at 6e-8. Gradients of the activations below that are lost on the way back, so early
layers learn little or nothing.

## Looks like
Loss falls more slowly than in float32, or stays where it began; some layers never change; now and
then NaN.

## Example
    with torch.autocast("cuda", dtype=torch.float16):
        loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()

## Use instead
    scaler = torch.amp.GradScaler("cuda")  # once; or bfloat16, which needs none
    with torch.autocast("cuda", dtype=torch.float16):
        loss = criterion(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

## Confirm it
The script runs again with autocast off. Confirmed when gradients that were zero or not finite at
the same first step, from the same weights and the same batch, are there, or when a tensor whose
gradient has no zeros in float32 has them here; refuted when the same gradients are zero in float32
too.

## False alarms
ReLU networks, dropout and embeddings have zero gradients in float32 as well: the experiment refutes
those. bfloat16 has the range of float32 and is not looked at. A loss that goes through a scaler,
float16 in evaluation only, and a frozen float16 backbone stay silent.

## References
Micikevicius et al., Mixed Precision Training (2018), figure 3: a third of an SSD's gradient values
are lost without scaling.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sawbones.evidence import NothingToJudge, compared, context, exact, finding
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Finding, Fix, Op, Run
from sawbones.stats.protocol import measured
from sawbones.stats.series import finite
from sawbones.trace.locate import locate

NEEDS = ("backward", "ops", "tensor_statistics")
EXPLAINS = (
    "optimizer.lr-too-low",
    "model.vanishing-gradients",
    "model.dead-units",
    "model.frozen-params",
    "loop.exploding-gradients",
    "optimizer.lr-too-high",
    "evaluation.collapsed-prediction",
    "model.bad-init",
)
EXPERIMENT = "autocast_off"
LARGE = 256  # elements: of fewer, a hundredth is one or two
TABLES = ("Embedding", "EmbeddingBag")  # rows of absent tokens have no gradient anyway


def check(run: Run) -> Iterator[Finding]:
    backwards = [e for e in run.of_kind("backward") if e.phase == "train"]
    half = _half_op(run)
    if not backwards or half is None:
        raise NothingToJudge("no operator of a training forward pass gives float16")
    held = [t for t in run.tensors if t.requires_grad and t.optimizer >= 0]
    if run.of_kind("scale") or any(t.dtype == "float16" for t in held):
        return  # scaled; or the weights themselves are half precision, another fault
    zero, bad, largest, step = _lost(run)
    if not bad and not limits.ZERO_GRADIENTS.suspected_by(zero) and not _some_lost(run):
        return
    what = "not finite" if bad else f"zero for {zero:.0%} of the elements"
    text = (
        f"gradients at step {step} are {what}; the median tensor's largest is "
        f"{largest:.2g} (float16 ends at 6e-8)"
    )
    yield finding(
        f"Float16 without loss scaling: gradients are {what}",
        locate(backwards[0], half),
        (
            context(
                f"{half.name} gives float16, and no backward pass was scaled",
                signal="ops",
                steps=(step,),
            ),
            exact(text, bad, signal="tensor_statistics", steps=(step,))
            if bad
            else compared(
                text, zero, limits.ZERO_GRADIENTS, signal="tensor_statistics", steps=(step,)
            ),
        ),
        Fix(
            "Scale the loss: scaler.scale(loss).backward(); scaler.step(optimizer); "
            "scaler.update() with a torch.amp.GradScaler. "
            "Or use bfloat16, which needs none."
        ),
        at_most="likely" if bad or limits.SMALL_PEAK.undercut_by(largest) else "suspected",
    )


def _some_lost(run: Run) -> bool:
    """Whether at any measured step a hundredth of one large tensor's gradient is zero; the
    experiment asks float32.
    """
    large = [t.optimizer >= 0 and t.numel >= LARGE and t.owner not in TABLES for t in run.tensors]
    for step in dict.fromkeys(int(s) for s in run.tensor_steps):
        zeros = measured(run, "grad_zero_share", step)
        shares = finite(zeros[np.array(large)[: len(zeros)]])
        if limits.LARGE_TENSOR_ZEROS.reached_by(max(shares, default=0)):
            return True
    return False


def _half_op(run: Run) -> Op | None:
    forward = (op for deep in run.deep for op in deep.ops if op.phase == "forward")
    return next(
        (op for op in forward if any(v.dtype == "float16" and v.requires_grad for v in op.outputs)),
        None,
    )


def _lost(run: Run) -> tuple[float, int, float, int]:
    """(share of gradient elements that are zero, tensors that are not finite, median of the
    tensors' largest element, step) at the worst of the first measured steps.
    """
    found: list[tuple[float, int, float, int]] = []
    sizes = np.array([0 if t.owner in TABLES else t.numel for t in run.tensors], np.float64)
    held = np.array([t.optimizer >= 0 for t in run.tensors])
    for step in dict.fromkeys(int(s) for s in run.tensor_steps[:12]):
        zeros, norms, peaks = (
            measured(run, s, step) for s in ("grad_zero_share", "grad_l2", "grad_max")
        )
        bad = int(np.isinf(norms).sum())
        if bad:
            return 0, bad, float("inf"), step
        known = held & (norms >= 0) | np.isnan(norms) & np.isfinite(zeros)
        known &= (zeros >= 0) & (sizes > 0)
        if known.any():
            share = float(np.sum(zeros[known] * sizes[known]) / np.sum(sizes[known]))
            found.append((share, 0, float(np.median(np.abs(peaks[known]))), step))
    return max(found, key=lambda row: row[0], default=(0, 0, 0, 0))

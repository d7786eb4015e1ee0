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

from sawbones.schema import Evidence, Finding, Fix, Op, Run
from sawbones.stats.protocol import measured, sites_of

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
FEW, MANY = 0.03, 0.3
SOME, LARGE = 0.01, 256


def check(run: Run) -> Iterator[Finding]:
    backwards = [e for e in run.of_kind("backward") if e.phase == "train"]
    if not backwards or run.of_kind("scale"):
        return
    half = _half_op(run)
    if half is None:
        return
    if any(t.dtype == "float16" and t.requires_grad and t.optimizer >= 0 for t in run.tensors):
        return  # the weights themselves are half precision: another fault
    zero, bad, largest, step = _lost(run)
    if not bad and not zero >= FEW and not _some_lost(run):
        return
    sure = bad or (zero >= MANY and largest < 1e-3)
    what = "not finite" if bad else f"zero for {zero:.0%} of the elements"
    yield Finding(
        "loop.amp-no-scaler",
        "likely" if sure else "suspected",
        0.9 if sure else 0.6,
        f"Float16 without loss scaling: gradients are {what}",
        (*sites_of(backwards[0]), *((half.site,) if half.site else ())),
        (
            Evidence(f"{half.name} gives float16, and no backward pass was scaled", "ops", (step,)),
            Evidence(
                (
                    f"gradients at step {step} are {what}; the median tensor's largest is "
                    f"{largest:.2g} (float16 ends at 6e-8)"
                ),
                "tensor_statistics",
                (step,),
                zero,
                0.0,
            ),
        ),
        Fix(
            "Scale the loss: scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update() with a torch.amp.GradScaler. "
            "Or use bfloat16, which needs none.",
            replace=("float16", "bfloat16")
            if "float16" in (half.site.code if half.site else "")
            else None,
        ),
    )


def _some_lost(run: Run) -> bool:
    """Whether at any measured step a hundredth of one large tensor's gradient is zero; the
    experiment asks float32.
    """
    large = np.array(
        [
            t.optimizer >= 0 and t.numel >= LARGE and t.owner not in ("Embedding", "EmbeddingBag")
            for t in run.tensors
        ]
    )
    for step in dict.fromkeys(int(s) for s in run.tensor_steps):
        zeros = measured(run, "grad_zero_share", step)
        if np.any(zeros[large[: len(zeros)]] >= SOME):
            return True
    return False


def _half_op(run: Run) -> Op | None:
    for deep in run.deep:
        for op in deep.ops:
            if op.phase == "forward" and any(
                v.dtype == "float16" and v.requires_grad for v in op.outputs
            ):
                return op
    return None


def _lost(run: Run) -> tuple[float, bool, float, int]:
    """(share of gradient elements that are zero, any not finite, median of the tensors' largest
    element, step).
    """
    worst = (0.0, False, 0.0, 0)
    for step in [int(s) for s in dict.fromkeys(run.tensor_steps[:12])]:
        zeros, norms, peaks = (
            measured(run, s, step) for s in ("grad_zero_share", "grad_l2", "grad_max")
        )
        sizes = np.array(
            [t.numel if t.owner not in ("Embedding", "EmbeddingBag") else 0 for t in run.tensors],
            np.float64,
        )
        held = np.array([t.optimizer >= 0 for t in run.tensors]) & (norms >= 0) | np.isnan(
            norms
        ) & np.isfinite(zeros)
        known = held[: len(zeros)] & (zeros >= 0) & (sizes[: len(zeros)] > 0)
        if np.any(np.isinf(norms)):
            return 0.0, True, float("inf"), step
        if not known.any():
            continue
        share = float(np.sum(zeros[known] * sizes[known]) / np.sum(sizes[known]))
        if share > worst[0]:
            worst = (share, False, float(np.median(np.abs(peaks[known]))), step)
    return worst

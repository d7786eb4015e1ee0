"""Trained weights in half precision with no float32 master copy

## What it sees
Parameters of the model that an optimizer of torch's holds in float16 or bfloat16, and how far they
really move: the measured update against the one that the rule asks for (LR times gradient for plain
SGD, about LR per element for Adam and its kin). float16 weights are enough; bfloat16 ones fire when
at least half of the update is lost. A refusal of the scaler ("Attempting to unscale FP16
gradients") is the same fault. From step 0.

## Why it matters
An update below half a unit in the last place (1/2048 of a weight in float16, 1/256 in bfloat16)
rounds to nothing.

## Looks like
Training stalls at a loss that float32 gets below; lowering the LR makes it stop altogether; Adam's
epsilon of 1e-8 is 0 in float16, and so is the square of a small gradient, which makes its updates
huge.

## Example
    model = model.half()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

## Use instead
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with torch.autocast("cuda", dtype=torch.bfloat16):  # float16 needs a GradScaler as well
        loss = criterion(model(x), y)

## Confirm it
No experiment: the measured update stands against the asked one; with float32 weights both agree.

## False alarms
A frozen half-precision backbone with float32 adapters, and half-precision models whose float32
master copies are what the optimizer holds, stay silent. Optimizers that are not torch's own may
round stochastically and are mentioned at most.

## References
Micikevicius et al., Mixed Precision Training (2018), section 3.1: master copies in float32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sawbones.evidence import NothingToJudge, compared, counted, finding, refused
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Finding, Fix, Optimizer, Run, Site, Tensor
from sawbones.stats.protocol import measured
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import calls_of

NEEDS = ("tensors", "optimizers")
USES = ("source_calls",)
EXPLAINS = (
    "optimizer.lr-too-low",
    "loop.amp-no-scaler",
    "loop.scaler-misuse",
    "model.unstable-norm",
    "loop.scaler-skipping",
    "loss.unstable-log",
    "model.frozen-params",
    "optimizer.lr-too-high",
)
EXPERIMENT = None
HALF = ("float16", "bfloat16")
NAMES = {"float16": ("half", "fp16", "16-true"), "bfloat16": ("bf16", "bf16-true")}
ADAM_LIKE = ("Adam", "AdamW", "NAdam", "RAdam")
REFUSAL = "Attempting to unscale FP16 gradients"


def check(run: Run) -> Iterator[Finding]:
    held = [t for t in run.tensors if t.requires_grad and t.optimizer >= 0 and t.in_model]
    if not held:
        raise NothingToJudge("no optimizer holds a parameter of the model")
    half = [t for t in held if t.dtype in HALF]
    elements, all_elements = sum(t.numel for t in half), sum(t.numel for t in held)
    if not limits.HALF_ELEMENTS.reached_by(elements / all_elements):
        return
    optimizer = next((o for o in run.optimizers if o.index == half[0].optimizer), None)
    if optimizer is None:
        return
    dtype, message = half[0].dtype, run.ending.message or ""
    kept = _kept(run, optimizer, half)
    lost = limits.UPDATE_KEPT.undercut_by(kept)
    overflowed = dtype == "float16" and bool(np.any(~np.isfinite(run.losses)))
    evidence = [
        counted(
            f"{len(half)} of {len(held)} trained tensors are {dtype} ({half[0].name}, ...)",
            elements,
            all_elements,
            limits.HALF_ELEMENTS,
            signal="tensors",
        )
    ]
    if math.isfinite(kept):
        evidence.append(
            compared(
                f"{kept:.0%} of the asked update arrives in the weights",
                kept,
                limits.UPDATE_KEPT,
                below=True,
                expected=1,
                signal="tensor_statistics",
            )
        )
    if REFUSAL in message:
        evidence.append(refused(f"torch: {message.splitlines()[0][:120]}"))
    broken = REFUSAL in message or lost or overflowed
    clear = optimizer.builtin and (broken or dtype == "float16")
    yield finding(
        f"The weights themselves are {dtype}: small updates round to nothing",
        (*_written(run, dtype), *locate(optimizer)),
        evidence,
        Fix("Keep the weights in float32 and run the forward pass under torch.autocast."),
        at_most="likely" if clear else "suspected",
    )


def _written(run: Run, dtype: str) -> tuple[Site, ...]:
    """Where the source casts to half precision or names the type, one of each before a second of
    either.
    """
    casts, named = calls_of(run, ("cast",)), calls_of(run, ("dtype",), (dtype, *NAMES[dtype]))
    return locate(*casts[:1], *named[:1], *casts[1:2], *named[1:3])[:3]


def _kept(run: Run, optimizer: Optimizer, half: list[Tensor]) -> float:
    """Median share of the asked update that is found in the weights, over the measured steps."""
    group = optimizer.groups[0] if optimizer.groups else {}
    plain = optimizer.cls == "SGD" and not group.get("momentum") and not group.get("weight_decay")
    if not plain and optimizer.cls not in ADAM_LIKE:
        return math.nan
    rates = {
        int(s): float(lr)
        for s, lr in zip(run.steps.get("step", ()), run.steps.get("lr", ()), strict=False)
    }
    shares = []
    for step in dict.fromkeys(int(s) for s in run.tensor_steps):
        lr = rates.get(step, math.nan)
        updates, norms = measured(run, "update_l2", step), measured(run, "grad_l2", step)
        for tensor in half:
            if len(tensor.shape) < 2 or tensor.index >= len(updates):
                continue
            update, norm = updates[tensor.index], norms[tensor.index]
            if norm > 0 and lr > 0 and math.isfinite(update) and update >= 0:
                adam = limits.ADAM_UPDATE.times(lr * math.sqrt(tensor.numel))
                shares.append(update / (lr * norm if plain else adam))
    return float(np.median(shares)) if shares else math.nan

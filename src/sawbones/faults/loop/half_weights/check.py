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
    with torch.autocast("cuda", dtype=torch.float16):
        loss = criterion(model(x), y)

## Confirm it
The measured update against the asked one is the proof; with float32 weights both agree.

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

from sawbones.schema import Evidence, Finding, Fix, Optimizer, Run, Site, Tensor
from sawbones.stats.protocol import measured, sites_in

NEEDS = ("tensors", "optimizers")
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


def check(run: Run) -> Iterator[Finding]:
    held = [t for t in run.tensors if t.requires_grad and t.optimizer >= 0 and t.in_model]
    half = [t for t in held if t.dtype in HALF]
    refused = "Attempting to unscale FP16 gradients" in (run.ending.message or "")
    if not half or sum(t.numel for t in half) < 0.5 * sum(t.numel for t in held):
        return
    optimizer = next((o for o in run.optimizers if o.index == half[0].optimizer), None)
    if optimizer is None:
        return
    kept = _kept(run, optimizer, half)
    dtype = half[0].dtype
    lost = math.isfinite(kept) and kept < 0.5
    broken = refused or lost or (dtype == "float16" and bool(np.any(~np.isfinite(run.losses))))
    if not broken and (dtype == "bfloat16" or not optimizer.builtin):
        status, confidence = "suspected", 0.4
    elif not optimizer.builtin:
        status, confidence = "suspected", 0.5
    else:
        status, confidence = ("proven", 0.96) if broken else ("likely", 0.85)
    evidence = [
        Evidence(
            f"{len(half)} of {len(held)} trained tensors are {dtype} ({half[0].name}, ...)",
            "tensors",
            (),
            float(len(half)),
            0.0,
        )
    ]
    if math.isfinite(kept):
        evidence.append(
            Evidence(
                f"{kept:.0%} of the asked update arrives in the weights",
                "tensor_statistics",
                (),
                kept,
                1.0,
            )
        )
    if refused:
        evidence.append(
            Evidence(f"torch: {(run.ending.message or '').splitlines()[0][:120]}", "crash")
        )
    yield Finding(
        "loop.half-weights",
        status,
        confidence,
        f"The weights themselves are {dtype}: small updates round to nothing",
        (*_written(run, dtype), *((optimizer.site,) if optimizer.site else ())),
        tuple(evidence),
        Fix("Keep the weights in float32 and run the forward pass under torch.autocast."),
    )


def _written(run: Run, dtype: str) -> tuple[Site, ...]:
    """Where the source casts to half precision or names the type, one of each before a second of
    either.
    """
    casts, named = sites_in(run, ("cast",)), sites_in(run, ("dtype",), (dtype, *NAMES[dtype]))
    places: dict[tuple[str, int], Site] = {}
    for site in (*casts[:1], *named[:1], *casts[1:2], *named[1:3]):
        places.setdefault((site.file, site.line), site)
    return tuple(places.values())[:3]


def _kept(run: Run, optimizer: Optimizer, half: list[Tensor]) -> float:
    """Median share of the asked update that is found in the weights, over the measured steps."""
    shares = []
    rates = {
        int(s): float(lr)
        for s, lr in zip(run.steps.get("step", ()), run.steps.get("lr", ()), strict=False)
    }
    group = optimizer.groups[0] if optimizer.groups else {}
    plain = optimizer.cls == "SGD" and not group.get("momentum") and not group.get("weight_decay")
    if not plain and optimizer.cls not in ADAM_LIKE:
        return math.nan
    for step in [int(s) for s in dict.fromkeys(run.tensor_steps)]:
        lr = rates.get(step, math.nan)
        updates, norms = measured(run, "update_l2", step), measured(run, "grad_l2", step)
        for tensor in half:
            if (
                len(tensor.shape) < 2
                or tensor.index >= len(updates)
                or not norms[tensor.index] > 0
                or not lr > 0
            ):
                continue
            asked = lr * norms[tensor.index] if plain else 0.3 * lr * math.sqrt(tensor.numel)
            if math.isfinite(updates[tensor.index]) and updates[tensor.index] >= 0:
                shares.append(updates[tensor.index] / asked)
    return float(np.median(shares)) if shares else math.nan

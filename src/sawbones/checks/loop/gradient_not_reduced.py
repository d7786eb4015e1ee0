"""Gradients that every rank keeps to itself

## What it sees
The norm of every gradient at the optimizer step, on every rank. Fires when gradients differ between ranks at the first measured
step although the parameters were the same.

## Why it matters
Each rank trains its own model on its own part of the data; what is saved is the model of rank 0 alone.

## Looks like
Losses of the ranks drift apart; the result is that of one rank with a fraction of the data.

## Example
    model = DistributedDataParallel(model)
    loss = criterion(model.module(x), y)

## Use instead
    model = DistributedDataParallel(model)
    loss = criterion(model(x), y)

## Confirm it
No experiment: after a reduction the gradients of all ranks are equal.

## False alarms
Sharded models hold different parts. Rounding between ranks stays below 1e-4. Ranks that start from different weights have another
fault.

## References
The PyTorch notes on DistributedDataParallel: the forward must go through the wrapper.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.schema import Evidence, Finding, Fix, Run
from sawbones.stats.ranks import everyone, first_difference, is_sharded, started_apart, wrapped

NEEDS = ("ranks", "tensor_statistics", "tensors")
EXPLAINS = ("loop.rank-desync",)
EXPERIMENT = None
TOLERANCE = 1e-4


def check(run: Run) -> Iterator[Finding]:
    if any(is_sharded(r) for r in everyone(run)):
        return
    for other in run.ranks:
        gradient = first_difference(run, other, "grad_l2", TOLERANCE)
        weights = first_difference(run, other, "param_l2", 1e-5)
        if gradient is None or (weights is not None and weights[0] < gradient[0]) or started_apart(run, other, gradient[0]):
            continue
        step, tensor, ours, theirs = gradient
        name = run.tensors[tensor].name if tensor < len(run.tensors) else f"tensor {tensor}"
        wrapper = wrapped(run)
        forward = next((e.site for e in run.of_kind("forward") if e.phase == "train"), None)
        backward = next((e.site for e in run.of_kind("backward")), None)
        paused = next((e.site for e in run.of_kind("parallel") if e.data.get("cls") == "no_sync"), None)
        places = (paused, forward, backward, wrapper.site if wrapper else None)
        reason = "the wrapper is bypassed or no_sync stays on" if wrapper else "nothing averages them"
        yield Finding(
            "loop.gradient-not-reduced", "proven", 0.94, f"Gradients are not averaged over the ranks: {reason}",
            tuple(dict.fromkeys(p for p in places if p is not None)),
            (
                Evidence(
                    f"gradient of {name} at step {step}: norm {ours:.6g} on rank 0, {theirs:.6g} on rank {other.rank}",
                    "tensor_statistics", (step,), theirs, ours,
                ),
            ),
            Fix("Call the wrapped model itself, outside of no_sync() on the last microstep; or all-reduce and average."),
        )  # fmt: skip
        return

"""Gradients that every rank keeps to itself

## What it sees
The norm of every gradient at the optimizer step, on every rank. Fires when gradients differ between
ranks at the first measured step although the parameters were the same. A gradient that is longer
than the ranks' own gradients are on average cannot be their mean: it was summed and not divided.
This is suspected, and the experiment decides.

## Why it matters
Each rank trains its own model on its own part of the data; what is saved is the model of rank 0
alone.

## Looks like
Losses of the ranks drift apart; the result is that of one rank with a fraction of the data.

## Example
    model = DistributedDataParallel(model)
    loss = criterion(model.module(x), y)

## Use instead
    model = DistributedDataParallel(model)
    loss = criterion(model(x), y)

## Confirm it
After a reduction the gradients of all ranks are equal, which needs no experiment. A sum is
confirmed by running the script on one rank with batches as large as those of all ranks together:
the gradient of that is the mean.

## False alarms
Sharded models hold different parts. Rounding between ranks stays below 1e-4. Ranks that start from
different weights have another fault. A loss that is divided by the number of ranks before the
backward pass makes the sum a mean: the value that went backward is then not that of the loss.

## References
The PyTorch notes on DistributedDataParallel: the forward must go through the wrapper.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.ranks import (
    everyone,
    first_difference,
    is_sharded,
    started_apart,
    tables,
    wrapped,
)

NEEDS = ("ranks", "tensor_statistics", "tensors")
EXPLAINS = ("loop.rank-desync",)
EXPERIMENT = None
TOLERANCE = 1e-4
LONGER = 1.1


def check(run: Run) -> Iterator[Finding]:
    if any(is_sharded(r) for r in everyone(run)):
        return
    summed = _summed(run)
    if summed is not None:
        yield summed
    for other in run.ranks:
        gradient = first_difference(run, other, "grad_l2", TOLERANCE)
        weights = first_difference(run, other, "param_l2", 1e-5)
        if (
            gradient is None
            or (weights is not None and weights[0] < gradient[0])
            or started_apart(run, other, gradient[0])
        ):
            continue
        step, tensor, ours, theirs = gradient
        name = run.tensors[tensor].name if tensor < len(run.tensors) else f"tensor {tensor}"
        wrapper = wrapped(run)
        forward = next((e.site for e in run.of_kind("forward") if e.phase == "train"), None)
        backward = next((e.site for e in run.of_kind("backward")), None)
        paused = next(
            (e.site for e in run.of_kind("parallel") if e.data.get("cls") == "no_sync"), None
        )
        left_out = _left_out(run, other, step) if wrapper else None
        places = (paused, left_out, forward, backward, wrapper.site if wrapper else None)
        reason = (
            "the wrapper is bypassed or no_sync stays on" if wrapper else "nothing averages them"
        )
        if left_out is not None:
            reason = "a part of the model is not wrapped"
        yield Finding(
            "loop.gradient-not-reduced",
            "proven",
            0.94,
            f"Gradients are not averaged over the ranks: {reason}",
            tuple(dict.fromkeys(p for p in places if p is not None)),
            (
                Evidence(
                    (
                        f"gradient of {name} at step {step}: norm {ours:.6g} on rank 0, "
                        f"{theirs:.6g} on rank {other.rank}"
                    ),
                    "tensor_statistics",
                    (step,),
                    theirs,
                    ours,
                ),
            ),
            Fix(
                "Call the wrapped model itself, outside of no_sync() on the last "
                "microstep; or all-reduce and average."
            ),
        )
        return


def _left_out(run: Run, other: Run, step: int) -> Site | None:
    """Where the module is built that holds all gradients that differ, while others agree: it has no
    wrapper of its own.
    """
    ours, theirs = tables(run, "grad_l2").get(step), tables(other, "grad_l2").get(step)
    if ours is None or theirs is None or len(ours) != len(theirs) or len(ours) != len(run.tensors):
        return None
    known = ~np.isnan(ours) & ~np.isnan(theirs) & (ours + theirs > 0)
    differ = known & (np.abs(ours - theirs) > TOLERANCE * (np.abs(ours) + np.abs(theirs)))
    agree = int(np.sum(known & ~differ))
    paths = [t.name.split(".")[:-1] for t in run.tensors if differ[t.index]]
    if agree < 2 or len(paths) < 2:
        return None
    shared = [a for a, *rest in zip(*paths, strict=False) if all(b == a for b in rest)]
    return next((m.built for m in run.modules if m.path == ".".join(shared)), None)


def _summed(run: Run) -> Finding | None:
    """The mean of some vectors is never longer than the mean of their lengths."""
    rows = [
        {int(row["step"]): row for row in (r.facts.get("local_gradients") or {}).get("rows", ())}
        for r in everyone(run)
    ]
    for step in sorted(set.intersection(*(set(r) for r in rows))) if all(rows) else ():
        own = np.mean([np.asarray(r[step]["after_backward"], np.float64) for r in rows], axis=0)
        used = np.asarray(rows[0][step]["at_step"], np.float64)
        known = own > 1e-9
        if not np.any(known) or not _is_whole_loss(run, step):
            continue
        ratio = float(np.median(used[known] / own[known]))
        reduced = [
            e.site for e in run.of_kind("collective") if e.step == step and e.site is not None
        ]
        if ratio > LONGER and reduced:
            return Finding(
                "loop.gradient-not-reduced",
                "suspected",
                0.6,
                "Gradients are summed over the ranks and not divided",
                tuple(dict.fromkeys(reduced))[:3],
                (
                    Evidence(
                        (
                            f"step {step}: gradients are {ratio:.3g} times as long as the "
                            "ranks' own; a mean of them cannot be longer"
                        ),
                        "ranks",
                        (step,),
                        ratio,
                        1.0,
                    ),
                ),
                Fix("Divide by the number of ranks after the reduction, or use ReduceOp.AVG."),
                experiment="one_rank_against_two",
            )
    return None


def _is_whole_loss(run: Run, step: int) -> bool:
    """What went backward is a value that a loss function returned, not a part of it."""
    losses = [e.data.get("value") for e in run.of_kind("loss") if e.step == step]
    roots = [e.data.get("value") for e in run.of_kind("backward") if e.step == step]
    pairs = [(float(a), float(b)) for a in losses for b in roots if a is not None and b is not None]
    return any(abs(a - b) <= 1e-5 * abs(a) for a, b in pairs)

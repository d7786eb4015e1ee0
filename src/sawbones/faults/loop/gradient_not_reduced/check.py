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

from sawbones.evidence import NothingToJudge, compared, exact, finding
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.stats.ranks import (
    everyone,
    first_difference,
    is_sharded,
    started_apart,
    tables,
    wrapped,
)
from sawbones.stats.relative import relative_difference
from sawbones.trace.locate import locate

NEEDS = ("ranks", "tensor_statistics", "tensors")
USES = ("agreement", "local_gradients", "sharded")
EXPLAINS = ("loop.rank-desync",)
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    if any(is_sharded(r) for r in everyone(run)):
        raise NothingToJudge("each rank holds a part of every tensor, so norms must differ")
    yield from _summed(run)
    for other in run.ranks:
        gradient = first_difference(run, other, "grad_l2", limits.RANK_GRADIENTS.value)
        if gradient is None:
            continue
        step, tensor, ours, theirs = gradient
        weights = first_difference(run, other, "param_l2", limits.RANK_WEIGHTS.value)
        if (weights is not None and weights[0] < step) or started_apart(run, other, step):
            continue
        name = run.tensors[tensor].name if tensor < len(run.tensors) else f"tensor {tensor}"
        wrapper = wrapped(run)
        forward = next((e.site for e in run.of_kind("forward") if e.phase == "train"), None)
        backward = next((e.site for e in run.of_kind("backward")), None)
        paused = next(
            (e.site for e in run.of_kind("parallel") if e.data.get("cls") == "no_sync"), None
        )
        left_out = _left_out(run, other, step) if wrapper else None
        reason = (
            "the wrapper is bypassed or no_sync stays on" if wrapper else "nothing averages them"
        )
        if left_out is not None:
            reason = "a part of the model is not wrapped"
        yield finding(
            f"Gradients are not averaged over the ranks: {reason}",
            locate(paused, left_out, forward, backward, wrapper),
            (
                exact(
                    f"gradient of {name} at step {step}: norm {ours:.6g} on rank 0, "
                    f"{theirs:.6g} on rank {other.rank}",
                    theirs,
                    expected=ours,
                    within=limits.RANK_GRADIENTS.times(abs(ours) + abs(theirs)),
                    signal="tensor_statistics",
                    steps=(step,),
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
    known = [t for t in run.tensors if ours[t.index] + theirs[t.index] > 0]
    differ = [
        t
        for t in known
        if limits.RANK_GRADIENTS.passed_by(
            abs(ours[t.index] - theirs[t.index]) / (ours[t.index] + theirs[t.index])
        )
    ]
    if len(known) - len(differ) < 2 or len(differ) < 2:
        return None
    paths = [t.name.split(".")[:-1] for t in differ]
    shared = [a for a, *rest in zip(*paths, strict=False) if all(b == a for b in rest)]
    return next((m.built for m in run.modules if m.path == ".".join(shared)), None)


def _summed(run: Run) -> Iterator[Finding]:
    """The mean of some vectors is never longer than the mean of their lengths."""
    rows = [
        {row.step: row for row in r.local_gradients.rows} if r.local_gradients else {}
        for r in everyone(run)
    ]
    for step in sorted(set.intersection(*map(set, rows))):
        own = np.mean([np.asarray(r[step].after_backward, np.float64) for r in rows], axis=0)
        used = np.asarray(rows[0][step].at_step, np.float64)
        ratios = [
            u / o for u, o in zip(used, own, strict=True) if limits.LOCAL_GRADIENT.passed_by(o)
        ]
        reduced = [e.site for e in run.of_kind("collective") if e.step == step]
        if not ratios or not any(reduced) or not _is_whole_loss(run, step):
            continue
        ratio = float(np.median(ratios))
        if limits.SUMMED_GRADIENTS.passed_by(ratio):
            yield finding(
                "Gradients are summed over the ranks and not divided",
                locate(*reduced)[:3],
                (
                    compared(
                        f"step {step}: gradients are {ratio:.3g} times as long as the "
                        "ranks' own; a mean of them cannot be longer",
                        ratio,
                        limits.SUMMED_GRADIENTS,
                        expected=1,
                        signal="ranks",
                        steps=(step,),
                    ),
                ),
                Fix("Divide by the number of ranks after the reduction, or use ReduceOp.AVG."),
                at_most="suspected",  # a sum may be meant, with an LR to match
                trial="one_rank_against_two",
            )
            return


def _is_whole_loss(run: Run, step: int) -> bool:
    """What went backward is a value that a loss function returned, not a part of it."""
    losses = [e.data.get("value") for e in run.of_kind("loss") if e.step == step]
    roots = [e.data.get("value") for e in run.of_kind("backward") if e.step == step]
    return any(
        limits.ROOT_IS_LOSS.kept_by(relative_difference(float(root), float(loss)))
        for loss in losses
        for root in roots
        if loss is not None and root is not None
    )

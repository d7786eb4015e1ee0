"""Gradients of a sharded model clipped by the norm of one rank's part

## What it sees
On every rank of a sharded model, the norm of its part of each gradient after the backward pass and
again at the optimizer's step, over the first eight steps. Clipping by a norm multiplies every
tensor of a rank by one factor. Fires when that factor differs between ranks by more than 1 %. Step
0 is enough.

## Why it matters
The norm over all shards is larger than that of any part. Each rank scales its part by another
factor, so the clipped gradient points elsewhere, is too large as a whole, and changes with the
number of ranks.

## Looks like
A clipping threshold that no longer does what it did on one device; spikes that come back when ranks
are added.

## Example
    local = torch.stack([p.grad.to_local().norm() for p in model.parameters()]).norm()
    for p in model.parameters():
        p.grad.mul_(min(1.0, max_norm / local))

## Use instead
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)

## Confirm it
No experiment: one factor for all ranks is what clipping by a global norm means, and the factors
were measured.

## False alarms
Clipping by value and clipping each tensor by itself change the tensors of one rank by different
factors and stay silent. Without sharding every rank has the whole gradient, and all factors are
equal.

## References
The FSDP documentation on clip_grad_norm_: the method of the wrapper, or DTensor gradients, not the
norm of the local shards.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.evidence.limits import TINY
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Finding, Fix, Run
from sawbones.stats.ranks import everyone
from sawbones.trace.locate import locate

NEEDS = ("ranks", "shards")
USES = ("agreement",)
EXPLAINS = ("loop.rank-desync", "loop.gradient-not-reduced", "loop.clip-after-step")
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    ours, *others = ((r, _factors(r)) for r in everyone(run))
    pairs = [
        (step, other.rank, ours[1][step], theirs[step])
        for other, theirs in others
        for step in sorted(set(ours[1]) & set(theirs))
    ]
    if not pairs:
        raise NothingToJudge("no step at which two ranks multiply all their gradients by a factor")
    for step, rank, a, b in pairs:
        clipped = limits.CLIP_SHRINKS.kept_by(min(a, b))
        if not clipped or limits.SHARD_FACTORS.kept_by(abs(a - b) / max(a, b)):
            continue
        sites = [e.site for e in run.of_kind("clip") if e.step == step]
        sites += run.shards.sites if run.shards else ()
        sites += [e.site for e in run.of_kind("step")[:1]]
        text = (
            f"step {step}: clipping multiplies the gradients by {a:.4g} on rank "
            f"{run.rank} and by {b:.4g} on rank {rank}"
        )
        within = limits.SHARD_FACTORS.times(max(a, b))
        yield finding(
            "Sharded gradients are clipped by the norm of each rank's own part",
            locate(*sites)[:4],
            (exact(text, b, expected=a, within=within, signal="shards", steps=(step,)),),
            Fix(
                "Use torch.nn.utils.clip_grad_norm_(model.parameters(), ...) on the "
                "shards, or sum squares over ranks."
            ),
        )
        return


def _factors(run: Run) -> dict[int, float]:
    """step -> by what all gradients of this rank were multiplied; left out when it was not one
    factor.
    """
    found = {}
    for row in run.shards.rows if run.shards else ():
        before, at = (np.asarray(n, np.float64) for n in (row.after_backward, row.at_step))
        used = (before > TINY) & np.isfinite(before) & np.isfinite(at)
        ratios = at[used] / before[used]
        if len(ratios) and limits.ONE_FACTOR.kept_by(np.ptp(ratios) / max(ratios.max(), TINY)):
            found[row.step] = float(np.median(ratios))
    return found

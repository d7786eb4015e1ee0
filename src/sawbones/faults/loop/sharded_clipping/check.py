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
import numpy.typing as npt

from sawbones.schema import Evidence, Finding, Fix, Run
from sawbones.stats.loss_calls import as_site
from sawbones.stats.ranks import everyone

NEEDS = ("ranks", "shards")
EXPLAINS = ("loop.rank-desync", "loop.gradient-not-reduced", "loop.clip-after-step")
EXPERIMENT = None
SAME = 1e-3  # factors of the tensors of one rank
APART = 0.01  # factors of two ranks


def check(run: Run) -> Iterator[Finding]:
    ranks = everyone(run)
    factors = [_factors(r) for r in ranks]
    for other, theirs in zip(ranks[1:], factors[1:], strict=True):
        for step in sorted(set(factors[0]) & set(theirs)):
            a, b = factors[0][step], theirs[step]
            if min(a, b) > 1 - SAME or abs(a - b) <= APART * max(a, b):
                continue
            sites = [e.site for e in run.of_kind("clip") if e.step == step]
            sites += [as_site(s) for s in run.facts["shards"]["sites"]]
            sites += [e.site for e in run.of_kind("step")[:1]]
            text = (
                f"step {step}: clipping multiplies the gradients by {a:.4g} on rank "
                f"{run.rank} and by {b:.4g} on rank {other.rank}"
            )
            yield Finding(
                "loop.sharded-clipping",
                "proven",
                0.96,
                "Sharded gradients are clipped by the norm of each rank's own part",
                tuple(dict.fromkeys(s for s in sites if s is not None))[:4],
                (Evidence(text, "shards", (step,), b, a),),
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
    for row in (run.facts.get("shards") or {}).get("rows", ()):
        before, at = (np.asarray(row[key], np.float64) for key in ("after_backward", "at_step"))
        used = (before > 1e-12) & np.isfinite(before) & np.isfinite(at)
        if not np.any(used):
            continue
        ratios: npt.NDArray[np.float64] = at[used] / before[used]
        if float(ratios.max() - ratios.min()) <= SAME * float(ratios.max()):
            found[int(row["step"])] = float(np.median(ratios))
    return found

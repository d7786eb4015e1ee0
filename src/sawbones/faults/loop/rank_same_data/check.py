"""Every rank reads the same data

## What it sees
Fingerprints of every training sample on every rank. Fires when at least 90 % of the batches of two
ranks are the same, batch by batch, over four batches or more.

## Why it matters
N ranks do the work of one: the same gradient is computed N times, at N times the cost.

## Looks like
No speed-up and no better curve from more ranks; an epoch takes as long as on one.

## Example
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    model = DistributedDataParallel(model)

## Use instead
    sampler = DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler)
    model = DistributedDataParallel(model)

## Confirm it
No experiment: the samples are the same bit for bit.

## False alarms
Ranks that hold parts of one model (tensor or pipeline parallel) share data on purpose: only
data-parallel wrappers or gradient reductions count.

## References
The PyTorch DDP tutorial, on DistributedSampler.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, counted, finding
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.stats.ranks import everyone, trained_prints, training_sites
from sawbones.trace.locate import locate

NEEDS = ("ranks", "batches")
USES = ("agreement", "source_calls", "loaders", "events_in_full")
EXPLAINS = ("loop.sampler-epoch", "loop.gradient-not-reduced")
EXPERIMENT = None
SHUFFLES = ("randperm", "permutation", "shuffle", "sample", "choice", "choices", "permuted")
MIN_BATCHES = 4  # fewer may be a warm-up that all ranks make on one batch


def check(run: Run) -> Iterator[Finding]:
    prints = [trained_prints(r) for r in everyone(run)]
    pairs_by_rank = [list(zip(prints[0], theirs, strict=False)) for theirs in prints[1:]]
    enough = any(len(pairs) >= MIN_BATCHES for pairs in pairs_by_rank)
    if not enough or not run.of_kind("parallel", "collective"):
        raise NothingToJudge("no two ranks that work together have four training batches each")
    for rank, pairs in enumerate(pairs_by_rank, 1):
        same = sum(a == b for a, b in pairs)
        if len(pairs) < MIN_BATCHES or not limits.SAME_BATCHES.reached_by(same / len(pairs)):
            continue
        text = f"{same} of {len(pairs)} training batches of rank 0 and rank {rank} are the same"
        yield finding(
            f"All {len(prints)} ranks train on the same data",
            _where(run),
            (counted(text, same, len(pairs), limits.SAME_BATCHES, signal="batches"),),
            Fix(
                "Give every rank its own part: sampler=DistributedSampler(dataset), "
                "without shuffle=True, or a slice by rank."
            ),
        )
        return


def _where(run: Run) -> tuple[Site, ...]:
    """Where samples are chosen. Drawn at random without a loader and an order, they are the same
    because the seed is.
    """
    chosen = training_sites(run)
    orders = [c for c in run.source_calls if c.kind == "order" and c.function in SHUFFLES]
    if orders or run.loaders:
        return chosen
    seeds = [(e.data.get("library"), e.data.get("value"), e.site) for e in run.of_kind("seed")]
    others = [
        {(e.data.get("library"), e.data.get("value")) for e in r.of_kind("seed")} for r in run.ranks
    ]
    shared = [
        site for library, value, site in seeds if all((library, value) in known for known in others)
    ]
    return locate(*shared[:1], *chosen)

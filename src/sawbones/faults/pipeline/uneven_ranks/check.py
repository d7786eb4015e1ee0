"""Ranks get different amounts of work

## What it sees
The size of every training batch on every rank: the values of its largest tensor, padding included,
since padding is computed like the rest. Fires when, in the middle step, ranks could have done with a
quarter less time had the same work been shared out evenly, and it is the same rank that has most of
it in most steps. Without one such rank, from the same share on, it is suspected.

## Why it matters
Every step ends when the slowest rank has come. The others wait, at the price of their devices.

## Looks like
Low use of all devices but one; the time of a step is that of its longest batch.

## Example
    rows = sorted(texts, key=len)
    mine = rows[rank * share : (rank + 1) * share]  # rank 0 has the short ones

## Use instead
    rows = sorted(texts, key=len)
    mine = rows[rank::world]  # neighbours in length go to different ranks

## Confirm it
Nothing is left to confirm: the sizes were read off the batches.

## False alarms
Texts of random lengths differ in every batch, now on one rank, now on another: that is at most
suspected. Ranks that hold parts of one model (tensor or pipeline parallel) get other tensors on
purpose: only data-parallel wrappers or gradient reductions count.

## References
Length-grouped samplers, and the "uneven inputs" page of PyTorch's DistributedDataParallel.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from statistics import median

from sawbones.evidence import NothingToJudge, compared, counted, finding
from sawbones.evidence.limits import pipeline as limits
from sawbones.schema import Batch, Evidence, Finding, Fix, Run
from sawbones.stats.ranks import everyone, training_sites
from sawbones.stats.splits import told_apart

PREVIEW = True
NEEDS = ("ranks", "batches")
USES = ("source_calls", "loaders", "events_in_full")
EXPLAINS = ("pipeline.starved",)
EXPERIMENT = None
MIN_STEPS = 8  # fewer may be the first, short ones of a sorted epoch


def check(run: Run) -> Iterator[Finding]:
    sizes = [{b.step: _size(b) for b in told_apart(r)[0]} for r in everyone(run)]
    steps = sorted(set.intersection(*(set(s) for s in sizes)))
    if len(steps) < MIN_STEPS or not run.of_kind("parallel", "collective"):
        raise NothingToJudge("no ranks that work together have eight training batches each")
    work = [[size[step] for size in sizes] for step in steps]
    spare = median(1 - sum(row) / (len(row) * max(row)) for row in work if max(row))
    if not limits.SPARE_WORK.reached_by(spare):
        return
    most, times = Counter(row.index(max(row)) for row in work).most_common(1)[0]
    totals = [sum(row[rank] for row in work) for rank in range(len(sizes))]
    text = (
        f"in the middle of {len(steps)} steps the ranks wait for {100 * spare:.0f} % of the work "
        f"that their largest batch takes; rank {most} has {totals[most] / min(totals):.2g} times "
        "as much as the one with least"
    )
    readings: tuple[Evidence, ...] = (
        compared(text, spare, limits.SPARE_WORK, signal="batches", steps=steps[:1]),
    )
    always = f"rank {most} has the largest batch in {times} of {len(steps)} steps"
    readings += (counted(always, times, len(steps), limits.SAME_RANK_LARGEST, signal="batches"),)
    yield finding(
        "Ranks get different amounts of work, and wait for the one with most",
        training_sites(everyone(run)[most]) or training_sites(run),
        readings,
        Fix(
            "Share out by length: sort, then give neighbours to different ranks "
            "(rows[rank::world]), or batches of equal numbers of tokens."
        ),
    )


def _size(batch: Batch) -> int:
    return max((math.prod(t["shape"]) for t in batch.tensors), default=0)

"""A distributed sampler that gives one order for ever

## What it sees
The order of training samples, epoch by epoch, of a loader with a DistributedSampler that shuffles.
Fires when two epochs or more have the same order and set_epoch was never called with another
number.

## Why it matters
Shuffling happens once: every epoch shows the same batches in the same order.

## Looks like
A loss curve with the same pattern in every epoch.

## Example
    for epoch in range(10):
        for x, y in loader:
            train_step(x, y)

## Use instead
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for x, y in loader:
            train_step(x, y)

## Confirm it
No experiment: the samples and their order are the same bit for bit.

## False alarms
A sampler with shuffle=False gives one order on purpose. Evaluation loaders are not looked at.

## References
The documentation of DistributedSampler.set_epoch.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.stats.splits import told_apart
from sawbones.trace.feeding import built_loaders
from sawbones.trace.locate import locate

NEEDS = ("batches", "loaders", "steps")
USES = ("epoch_loop", "events_in_full")
EXPLAINS = ("pipeline.no-shuffle",)
EXPERIMENT = None
MIN_SAMPLES = 4  # of fewer, two orders are the same by chance: one in 24 of four


def check(run: Run) -> Iterator[Finding]:
    shuffling = {
        x.source
        for x in run.loaders
        if x.sampler == "DistributedSampler" and x.sampler_shuffles is not False
    }
    trained, _ = told_apart(run)
    orders: dict[str, dict[int, list[int]]] = {}
    for batch in trained:
        if batch.source in shuffling:
            by_epoch = orders.setdefault(batch.source, {})
            by_epoch.setdefault(batch.epoch, []).extend(batch.fingerprints)
    judged = {
        source: epochs
        for source, by_epoch in orders.items()
        if len(epochs := [by_epoch[e] for e in sorted(by_epoch)]) > 1
        and len(epochs[0]) >= MIN_SAMPLES
    }
    if not judged:
        raise NothingToJudge("no DistributedSampler shuffles the training data of two epochs")
    if len({e.data.get("epoch") for e in run.of_kind("set_epoch")}) > 1:
        return
    for source, epochs in judged.items():
        if any(later != epochs[0][: len(later)] for later in epochs[1:]):
            continue
        text = (
            f"{len(epochs)} epochs give {len(epochs[0])} samples in one and the same order; "
            "set_epoch was never called"
        )
        yield finding(
            "The distributed sampler gives every epoch the same order",
            _sites(run, source),
            (exact(text, len(epochs), expected=1, signal="batches"),),
            Fix("Call set_epoch(epoch) of the sampler at the start of every epoch."),
        )
        return


def _sites(run: Run, source: str) -> tuple[Site, ...]:
    number = int(source.removeprefix("loader:"))
    reads = [e.site for e in run.of_kind("batch") if e.data.get("loader") == number]
    read = next((site for site in reads if site is not None), None)
    return locate(run.epoch_loop, read, *built_loaders(run, source))

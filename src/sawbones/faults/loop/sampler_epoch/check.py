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

from sawbones.schema import Batch, Evidence, Finding, Fix, Run, Site
from sawbones.stats.loss_calls import as_site, places
from sawbones.stats.splits import loader_site, told_apart

NEEDS = ("batches", "loaders", "steps")
EXPLAINS = ("pipeline.no-shuffle",)
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    loaders = {f"loader:{x['index']}": x for x in run.facts.get("loaders") or ()}
    if len({e.data.get("epoch") for e in run.of_kind("set_epoch")}) > 1:
        return
    trained, _ = told_apart(run)
    by_epoch: dict[tuple[str, int], list[int]] = {}
    first: dict[str, Batch] = {}
    for batch in trained:
        if loaders.get(batch.source, {}).get("sampler") == "DistributedSampler":
            by_epoch.setdefault((batch.source, batch.epoch), []).extend(batch.fingerprints)
            first.setdefault(batch.source, batch)
    for source in first:
        epochs = [prints for (s, _), prints in sorted(by_epoch.items()) if s == source]
        if len(epochs) < 2 or len(epochs[0]) < 4 or _in_order(loaders[source]):
            continue
        same = sum(e == epochs[0][: len(e)] for e in epochs[1:])
        if same < len(epochs) - 1:
            continue
        text = (
            f"{len(epochs)} epochs give {len(epochs[0])} samples in one and the same order; "
            "set_epoch was never called"
        )
        yield Finding(
            "loop.sampler-epoch",
            "proven",
            0.95,
            "The distributed sampler gives every epoch the same order",
            _sites(run, source),
            (Evidence(text, "batches", (), float(same + 1), 1.0),),
            Fix(
                "Call sampler.set_epoch(epoch) at the start of every epoch.",
                insert_before="sampler.set_epoch(epoch)",
            ),
        )
        return


def _in_order(loader: dict[str, object]) -> bool:
    return loader.get("sampler_shuffles") is False


def _sites(run: Run, source: str) -> tuple[Site, ...]:
    number = int(source.removeprefix("loader:"))
    read = next(
        (
            e.site
            for e in run.of_kind("batch")
            if e.data.get("loader") == number and e.site is not None
        ),
        None,
    )
    return places(as_site(run.facts.get("epoch_loop")), read, loader_site(run, source))

"""Batch normalisation over too few values

## What it sees
On deep steps, batch normalisations in training mode and how many values each of their channels
sees: examples times positions. Fires when it is at most 4 on every step, and is a suspicion up to
8; with 2, every output is +1 or -1 whatever the input was. A crash because there was only one value is named as well. Two or
fewer examples with many positions are only suspected.

## Why it matters
Statistics over a handful of values are noise: the layer passes on little of its input in training,
and something else in evaluation.

## Looks like
Training is slow and noisy; evaluation is far worse than training on the very same data.

## Example
    loader = DataLoader(data, batch_size=2)
    model = nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))

## Use instead
    loader = DataLoader(data, batch_size=32)
    model = nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))

## Confirm it
No experiment: the shapes that the layer got make it likely. Accumulating gradients over several
small batches does not help: every one of them is normalised by itself.

Where memory allows no larger batch, nn.GroupNorm or nn.LayerNorm instead of nn.BatchNorm.

## False alarms
Convolutions over large images or long sequences see thousands of values with a batch of two. Layers
in evaluation mode use their running statistics. A small last batch of an epoch is one of many. On
several ranks each normalises its own share: what counts is the batch of a rank, and SyncBatchNorm
counts those of all.

## References
Ioffe 2017, "Batch Renormalization"; Wu and He 2018, "Group Normalization", measure the loss of
accuracy with small batches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from sawbones.evidence import NothingToJudge, compared, context, finding, refused
from sawbones.evidence.limits import model as limits
from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.trace.locate import locate

NEEDS = ("ops",)
USES = ("loaders", "source_numbers")
EXPLAINS = ("evaluation.overfitting", "optimizer.lr-too-low")
EXPERIMENT = None
SMALL_BATCH = 2  # examples: statistics of two are known to be noisy


def check(run: Run) -> Iterator[Finding]:
    said = (run.ending.message or "") if run.ending.kind == "exception" else ""
    if "more than 1 value per channel" in said:
        text = f"a batch with a single value per channel ended the run: {said[:120]}"
        yield _finding(run, "", refused(text), run.ending.site, None)
        return
    shapes: dict[str, list[tuple[int, ...]]] = {}
    for deep in run.deep:
        for op in deep.ops:
            trains = op.name == "batch_norm" and op.args.get("training") and op.inputs
            if trains and len(op.inputs[0].shape) >= 2:
                shapes.setdefault(op.module, []).append(op.inputs[0].shape)
    if not shapes:
        raise NothingToJudge("no batch normalisation ran in training mode")
    small = {
        path: seen
        for path, seen in shapes.items()
        if limits.VALUES_PER_CHANNEL.suspected_below(max(map(_per_channel, seen)))
    }
    path, seen = min((small or shapes).items(), key=lambda item: max(map(_per_channel, item[1])))
    steps = [d.step for d in run.deep[:5]]
    if small:
        count = max(map(_per_channel, seen))
        text = (
            f"{len(small)} batch normalisations see {count} values per channel ({path}: "
            f"{seen[0]}) on all {len(seen)} steps looked at"
        )
        reading = compared(
            text, count, limits.VALUES_PER_CHANNEL, below=True, signal="ops", steps=steps
        )
        yield _finding(run, path, reading, None, seen[0][0])
    elif max(shape[0] for every in shapes.values() for shape in every) <= SMALL_BATCH:
        text = f"batches of {seen[0][0]} examples ({path}: {seen[0]})"
        yield _finding(run, path, context(text, signal="ops", steps=steps), None, seen[0][0])


def _per_channel(shape: tuple[int, ...]) -> int:
    return prod(shape) // max(shape[1], 1)


def _finding(
    run: Run, path: str, reading: Evidence, site: Site | None, batch: int | None
) -> Finding:
    built = next((m.built for m in run.modules if m.path == path), None)
    loader = next((each.site for each in run.loaders if each.batch_size == batch), None)
    numbers = _sizes(run, batch, loader) if batch is not None else []
    fix = (
        "Use larger batches, or a normalisation that does not look at the batch "
        "(GroupNorm, LayerNorm)."
    )
    if batch is None and run.num_steps:
        fix += " Where only the last batch is too small: drop_last=True in the DataLoader."
    if run.world_size > 1:
        fix += f" SyncBatchNorm takes the batches of all {run.world_size} ranks together."
    return finding(
        "Batch normalisation over too few values",
        locate(*numbers[:1], built, loader, site),
        (reading,),
        Fix(fix),
    )


def _sizes(run: Run, batch: int, loader: Site | None) -> list[Site]:
    """Where the batch size is written: under a name that the loader uses or that says batch, or as
    the only such number.
    """
    words = set(re.findall(r"\w+", loader.code.lower())) if loader is not None else set()
    rows = [row for row in run.source_numbers if row.value == batch and row.name]
    names = [row.name.lower().strip("-").replace("-", "_") for row in rows]
    named = [row for row, name in zip(rows, names, strict=True) if name in words or "batch" in name]
    chosen = named or (rows if loader is not None and len(rows) <= 2 else [])
    return [row.site for row in chosen]

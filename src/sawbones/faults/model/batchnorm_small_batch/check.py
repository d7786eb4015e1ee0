"""Batch normalisation over too few values

## What it sees
On deep steps, batch normalisations in training mode and how many values each of their channels
sees: examples times positions. Fires when it is at most 4 on every step; with 2, every output is +1
or -1 whatever the input was. A crash because there was only one value is named as well. Two or
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
The shapes that the layer got are the proof. Accumulating gradients over several small batches does
not help: every one of them is normalised by itself.

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

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.loss_calls import as_site, places

NEEDS = ("ops",)
EXPLAINS = ("evaluation.overfitting", "optimizer.lr-too-low")
EXPERIMENT = None
FEW = 4


def check(run: Run) -> Iterator[Finding]:
    counts: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
    for deep in run.deep:
        for op in deep.ops:
            if (
                op.name == "batch_norm"
                and op.args.get("training")
                and op.inputs
                and len(op.inputs[0].shape) >= 2
            ):
                shape = op.inputs[0].shape
                counts.setdefault(op.module, []).append((prod(shape) // max(shape[1], 1), shape))
    said = (run.ending.message or "") if run.ending.kind == "exception" else ""
    if "more than 1 value per channel" in said:
        yield _finding(
            run,
            "",
            f"a batch with a single value per channel ended the run: {said[:120]}",
            run.ending.site,
            "proven",
            None,
        )
        return
    small = {path: seen for path, seen in counts.items() if max(n for n, _ in seen) <= FEW}
    if small:
        path, seen = next(iter(small.items()))
        count, shape = seen[0]
        text = (
            f"{len(small)} batch normalisations see {count} values per channel ({path}: "
            f"{shape}) on all {len(seen)} steps looked at"
        )
        yield _finding(run, path, text, None, "proven", shape[0])
    elif counts and max(shape[0] for seen in counts.values() for _, shape in seen) <= 2:
        path, seen = next(iter(counts.items()))
        yield _finding(
            run,
            path,
            f"batches of {seen[0][1][0]} examples ({path}: {seen[0][1]})",
            None,
            "suspected",
            seen[0][1][0],
        )


def _finding(
    run: Run, path: str, text: str, site: Site | None, status: str, batch: int | None
) -> Finding:
    built = next((m.built for m in run.modules if m.path == path), None)
    loaders = run.facts.get("loaders") or ()
    sized = [loader for loader in loaders if loader.get("batch_size") == batch]
    loader = as_site(sized[0].get("site")) if sized else None
    numbers = _sizes(run, batch, loader) if batch is not None else []
    return Finding(
        "model.batchnorm-small-batch",
        status,
        0.93 if status == "proven" else 0.4,
        "Batch normalisation over too few values",
        places(*numbers[:1], built, loader, site),
        (Evidence(text, "ops", tuple(d.step for d in run.deep[:5])),),
        Fix(
            (
                "Use larger batches, or a normalisation that does not look at the batch "
                "(GroupNorm, LayerNorm)."
            )
            + (
                f" SyncBatchNorm takes the batches of all {run.world_size} ranks together."
                if run.world_size > 1
                else ""
            )
        ),
    )


def _sizes(run: Run, batch: int, loader: Site | None) -> list[Site]:
    """Where the batch size is written: under a name that the loader uses or that says batch, or as
    the only such number.
    """
    words = set(re.findall(r"\w+", loader.code.lower())) if loader is not None else set()
    rows = [
        row
        for row in run.facts.get("numbers") or ()
        if row.get("value") == batch and row.get("name")
    ]
    names = [str(row["name"]).lower().strip("-").replace("-", "_") for row in rows]
    named = [row for row, name in zip(rows, names, strict=True) if name in words or "batch" in name]
    chosen = named or (rows if loader is not None and len(rows) <= 2 else [])
    return [
        Site(str(row["file"]), int(row["line"]), "", str(row.get("code", ""))) for row in chosen
    ]

"""Training data in its stored order, sorted by class, or in one order in every epoch

## What it sees
The class labels of every training batch in order. Fires when batches are far less mixed than the
whole (the mean entropy of a batch is under 35 % of the entropy of all labels), and the commonest
label of a batch comes in long runs, as it does in sorted data: no more changes than two per class
and epoch. That the order is the same in every epoch is told beside it. Needs 8 batches. Fires when
real-valued targets come sorted: nearly every batch begins where the one before it ended. Fires too
when a loader that shuffles gives two or more passes over the data in exactly the same order, sample
by sample.

## Why it matters
Every step pulls towards one class; the model forgets the others until they come round again.

## Looks like
The loss saw-tooths: near zero inside of a class, a jump at each border; validation swings with the
class seen last.

## Example
    loader = DataLoader(dataset, batch_size=32)

## Use instead
    loader = DataLoader(dataset, batch_size=32, shuffle=True)

## Confirm it
Nothing is left to confirm: labels are counted batch by batch.

## False alarms
Data that lies in random order mixes its batches: read in that order in every epoch, without a
loader that shuffles, it is not reported. A script that shows the same batches to several models in
turn has several optimizers. Samplers that compose batches of a few classes on purpose change them
from batch to batch. A critic that is told "real" and then "made up" has several losses per batch,
which say nothing of the order of the data. Full-batch training has one batch per epoch. Truncated
backpropagation through time needs its order and has no class labels. Targets that drift with time,
or grow as a policy gets better, overlap from batch to batch.

## References
Folders read one class after the other; tables sorted by the target; shuffle=False copied from the
validation loader; a generator seeded again at the start of each epoch.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.data_lines import feeding_sites, loader_sites, training_batches
from sawbones.stats.loss_calls import as_site, places
from sawbones.stats.protocol import sites_in

NEEDS = ("batches",)
EXPLAINS = (
    "data.labels-misaligned",
    "evaluation.collapsed-prediction",
    "loop.loss-spike",
    "optimizer.lr-too-high",
    "data.class-imbalance",
    "evaluation.overfitting",
    "data.degenerate-samples",
)
EXPERIMENT = None
MIXED = 0.35
TOLD_TWICE = 1.5  # targets per batch; with more, a loss doesn't stand for a batch
IN_ORDER = 0.8  # of the batches; at the start of an epoch the order begins anew
MIN_SAMPLES = 16  # so many different ones in one order twice are no accident


def check(run: Run) -> Iterator[Finding]:
    found = list(_sorted(run)) or list(_sorted_values(run))
    yield from found or _repeated(run)


def _repeated(run: Run) -> Iterator[Finding]:
    """A loader that shuffles and yet gives every pass over the data in one order: its generator
    starts anew each time.
    """
    loaders = {f"loader:{x['index']}": x for x in run.facts.get("loaders") or ()}
    passes: dict[tuple[str, int], list[int]] = {}
    for batch in training_batches(run):
        if loaders.get(batch.source, {}).get("sampler") == "RandomSampler":
            passes.setdefault((batch.source, batch.epoch), []).extend(batch.fingerprints)
    orders = [p for p in passes.values() if len(set(p)) >= MIN_SAMPLES]
    # A script that trains several models may well show each of them the same batches.
    if len(orders) < 2 or len(run.optimizers) != 1 or len(orders) < len(passes) - 1:
        return
    if len(set(orders[0])) < 0.5 * len(orders[0]) or any(
        a != b for o in orders[1:] for a, b in zip(orders[0], o, strict=False)
    ):
        return
    size = min(map(len, orders))
    built = places(*(as_site(loaders[source].get("site")) for source, _ in passes))
    seeded = [s for s in sites_in(run, ("seed",)) if s.function in {b.function for b in built}]
    yield Finding(
        "pipeline.no-shuffle",
        "likely",
        0.95,
        "Every epoch comes in one and the same order, though the loader shuffles",
        places(
            *seeded[:1] if len(built) == 1 and built[0].function != "<module>" else (),
            *built,
            *feeding_sites(run),
        )[:4],
        (
            Evidence(
                (
                    f"{len(orders)} passes over the data begin with the same {size} samples "
                    "in the same order"
                ),
                "batches",
                value=float(len(orders)),
                expected=1.0,
            ),
        ),
        Fix(
            "Seed the generator once, before the first epoch, and let it run on from "
            "epoch to epoch."
        ),
    )


def _sorted(run: Run) -> Iterator[Finding]:
    labels = _labels(run)
    if len(labels) < 8:
        return
    total: Counter[str] = Counter()
    for batch in labels:
        total.update(batch)
    if len(total) < 2 or min(sum(b.values()) for b in labels) < 2:
        return
    rows = sum(sum(b.values()) for b in labels) / len(labels)
    whole = entropy(total)
    inside = float(np.mean([entropy(b) for b in labels])) / max(
        min(whole, math.log(max(rows, 2.0))), 1e-9
    )
    mains = [max(b, key=lambda k: b[k]) for b in labels]
    period = _period(run, len(labels))
    changes = sum(a != b for a, b in pairwise(mains)) / max(1.0, len(labels) / period)
    if (
        inside > MIXED
        or whole < 0.3
        or changes > 2 * len(total) + 1
        or changes > 0.5 * period
        or len(set(mains)) < 2
    ):
        return
    repeats = period < len(labels)
    yield Finding(
        "pipeline.no-shuffle",
        "likely",
        0.93,
        "Training batches come sorted by class",
        _where(run),
        (
            Evidence(
                (
                    f"the labels of a batch carry {inside:.0%} of the entropy they would have "
                    f"if mixed ({len(total)} classes)"
                ),
                "batches",
                value=inside,
                expected=1.0,
            ),
            Evidence(
                f"the commonest label of a batch changes {changes:.1f} times in {period} batches",
                "batches",
                value=changes,
                expected=period * (1 - 1 / len(total)),
            ),
            *(
                (
                    Evidence(
                        f"the same batches come again every {period} batches",
                        "batches",
                        value=float(period),
                    ),
                )
                if repeats
                else ()
            ),
        ),
        Fix(
            "Shuffle the training data: shuffle=True for the loader, or a new "
            "torch.randperm in every epoch."
        ),
    )


def _sorted_values(run: Run) -> Iterator[Finding]:
    """Targets are numbers, and each batch holds the next higher ones (or the next lower)."""
    levels: list[tuple[float, float]] = (run.facts.get("samples") or {}).get("levels") or []
    if len(levels) < 10 or not all(map(math.isfinite, (x for pair in levels for x in pair))):
        return
    # Single values far outside of the others say nothing: neither the range nor what counts as
    # beside it may hang on them.
    low, high = (
        float(np.quantile([a for a, _ in levels], 0.1)),
        float(np.quantile([b for _, b in levels], 0.9)),
    )
    width = float(np.median([b - a for a, b in levels]))
    if min(b - a for a, b in levels) <= 0.0 or width > 0.3 * (high - low):
        return
    slack = 0.05 * width
    above = sum(after[0] >= before[1] - slack for before, after in pairwise(levels)) / (
        len(levels) - 1
    )
    below = sum(after[1] <= before[0] + slack for before, after in pairwise(levels)) / (
        len(levels) - 1
    )
    if max(above, below) < IN_ORDER:
        return
    order = "above" if above > below else "below"
    yield Finding(
        "pipeline.no-shuffle",
        "likely",
        0.93,
        "Training batches come sorted by their target",
        _where(run),
        (
            Evidence(
                f"in {max(above, below):.0%} of {len(levels)} batches all targets lie {order} those of the batch before; a batch "
                f"spans {width / (high - low):.0%} of their range",
                "samples",
                value=max(above, below),
                expected=0.0,
            ),
        ),
        Fix(
            "Shuffle the training data: shuffle=True for the loader, or a new "
            "torch.randperm in every epoch."
        ),
    )


def entropy(counts: Mapping[str, int]) -> float:
    total = sum(counts.values())
    return -sum(n / total * math.log(n / total) for n in counts.values() if n)


def _labels(run: Run) -> list[Mapping[str, int]]:
    """What the losses were told, batch by batch; with several losses per batch, as in adversarial
    training, what was loaded.
    """
    told: list[Mapping[str, int]] = (run.facts.get("samples") or {}).get("labels") or []
    batches = training_batches(run)
    num = max([len(batches), *(b.index + 1 for b in batches)])
    return told if told and (not num or len(told) <= TOLD_TWICE * num) else _from_batches(run)


def _from_batches(run: Run) -> list[Mapping[str, int]]:
    found = []
    for batch in training_batches(run):
        counts = [t["counts"] for t in batch.tensors if t.get("counts")]
        if len(counts) == 1:
            found.append(counts[0])
    return found


def _period(run: Run, num: int) -> int:
    """After how many batches the first one comes again."""
    batches: Sequence[tuple[int, ...]] = [b.fingerprints for b in training_batches(run)]
    again = [i for i, marks in enumerate(batches) if i and marks and marks == batches[0]]
    if again:
        return again[0]
    first = [b for b in training_batches(run) if b.epoch == 0 and b.source != "model"]
    return len(first) if first and len(first) < num else num


def _where(run: Run) -> tuple[Site, ...]:
    loaders = loader_sites(run)
    if loaders:
        return loaders[:2]
    size = max(
        (math.prod(r["shape"]) for r in run.facts.get("data_ops") or () if r["op"] == "arange"),
        default=0,
    )
    ordered = [
        as_site(r["site"])
        for r in run.facts.get("data_ops") or ()
        if r["op"] == "arange" and math.prod(r["shape"]) == size
    ]
    indexed = [
        as_site(r["site"])
        for r in run.facts.get("data_ops") or ()
        if r["op"] in ("__getitem__", "index_select")
    ]
    return places(*(ordered[:1] if size > 50 else ()), *feeding_sites(run)[:1], *indexed[:1])[:4]

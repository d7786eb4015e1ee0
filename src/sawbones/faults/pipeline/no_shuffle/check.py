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

from sawbones.evidence import NothingToJudge, compared, context, counted, exact, finding
from sawbones.evidence.limits import TINY
from sawbones.evidence.limits import pipeline as limits
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.schema.samples import Samples
from sawbones.trace.feeding import feeding_sites, loader_sites, training_batches
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import calls_of

NEEDS = ("batches",)
USES = ("samples", "loaders", "made_tensors", "source_calls")
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
MIN_BATCHES = 8  # of labels: fewer show no order
MIN_LEVELS = 10  # batches of real-valued targets
MIN_SAMPLES = 16  # so many different ones in one order twice are no accident
MIN_TABLE = 50  # rows: shorter ranges are not those of a data set
SHUFFLE = Fix(
    "Shuffle the training data: shuffle=True for the loader, or a new torch.randperm in every "
    "epoch."
)


def check(run: Run) -> Iterator[Finding]:
    labels = _labels(run)
    levels = (run.samples or Samples()).levels
    passes = _shuffled_passes(run)
    if len(labels) < MIN_BATCHES and len(levels) < MIN_LEVELS and len(passes) < 2:
        raise NothingToJudge(
            f"no labels of {MIN_BATCHES} batches and no two passes over shuffled data"
        )
    found = list(_sorted(run, labels)) or list(_sorted_values(run, levels))
    yield from found or _repeated(run, passes)


def _shuffled_passes(run: Run) -> dict[tuple[str, int], list[int]]:
    shuffling = {x.source for x in run.loaders if x.sampler == "RandomSampler"}
    passes: dict[tuple[str, int], list[int]] = {}
    for batch in training_batches(run):
        if batch.source in shuffling:
            passes.setdefault((batch.source, batch.epoch), []).extend(batch.fingerprints)
    return passes


def _repeated(run: Run, passes: Mapping[tuple[str, int], list[int]]) -> Iterator[Finding]:
    """A loader that shuffles and yet gives every pass over the data in one order: its generator
    starts anew each time.
    """
    orders = [p for p in passes.values() if len(set(p)) >= MIN_SAMPLES]
    # A script that trains several models may well show each of them the same batches.
    if len(orders) < 2 or len(run.optimizers) != 1 or len(orders) < len(passes) - 1:
        return
    distinct = len(set(orders[0])) / len(orders[0])
    size = min(map(len, orders))
    if not limits.DISTINCT_SAMPLES.reached_by(distinct) or any(
        a != b for order in orders[1:] for a, b in zip(orders[0], order, strict=False)
    ):
        return
    sites = {x.source: x.site for x in run.loaders}
    built = locate(*(sites[source] for source, _ in passes))
    in_a_function = len(built) == 1 and built[0].function != "<module>"
    seeded = [
        s for s in calls_of(run, ("seed",)) if in_a_function and s.function == built[0].function
    ]
    text = (
        f"{len(orders)} passes over the data begin with the same {size} samples in the same order"
    )
    yield finding(
        "Every epoch comes in one and the same order, though the loader shuffles",
        locate(*seeded[:1], *built, *feeding_sites(run))[:4],
        (exact(text, len(orders), expected=1, signal="batches"),),
        Fix(
            "Seed the generator once, before the first epoch, and let it run on from "
            "epoch to epoch."
        ),
        at_most="likely",  # one order may be wanted, to compare two runs
    )


def _sorted(run: Run, labels: Sequence[Mapping[int, int]]) -> Iterator[Finding]:
    if len(labels) < MIN_BATCHES:
        return
    total: Counter[int] = Counter()
    for batch in labels:
        total.update(batch)
    if len(total) < 2 or min(sum(b.values()) for b in labels) < 2:
        return
    rows = sum(total.values()) / len(labels)
    whole = _entropy(total)
    mixed = min(whole, math.log(max(rows, 2)))
    inside = float(np.mean([_entropy(b) for b in labels])) / max(mixed, TINY)
    mains = [max(b, key=lambda k: b[k]) for b in labels]
    period = _period(run, len(labels))
    changes = sum(a != b for a, b in pairwise(mains)) / max(1, len(labels) / period)
    if (
        not limits.BATCH_ENTROPY.kept_by(inside)
        or limits.LABEL_ENTROPY.undercut_by(whole)
        or changes > 2 * len(total) + 1
        or limits.CHANGES_PER_BATCH.passed_by(changes / period)
        or len(set(mains)) < 2
    ):
        return
    evidence = [
        compared(
            f"the labels of a batch carry {inside:.0%} of the entropy they would have if mixed "
            f"({len(total)} classes)",
            inside,
            limits.BATCH_ENTROPY,
            below=True,
            expected=1,
            signal="batches",
        ),
        context(
            f"the commonest label of a batch changes {changes:.1f} times in {period} batches",
            signal="batches",
            value=changes,
            expected=period * (1 - 1 / len(total)),
        ),
    ]
    if period < len(labels):
        text = f"the same batches come again every {period} batches"
        evidence.append(context(text, signal="batches", value=period))
    yield finding("Training batches come sorted by class", _where(run), evidence, SHUFFLE)


def _sorted_values(run: Run, levels: Sequence[tuple[float, float]]) -> Iterator[Finding]:
    """Targets are numbers, and each batch holds the next higher ones (or the next lower)."""
    if len(levels) < MIN_LEVELS or not np.isfinite(levels).all():
        return
    lows, highs = np.array(levels).T
    # Single values far outside of the others say nothing: neither the range nor what counts as
    # beside it may hang on them.
    across = float(np.percentile(highs, 90) - np.percentile(lows, 10))
    width = float(np.median(highs - lows))
    if min(highs - lows) <= 0 or not limits.BATCH_SPAN.kept_by(width / max(across, TINY)):
        return
    overlap = limits.BATCH_OVERLAP
    above = sum(overlap.kept_by(x) for x in (highs[:-1] - lows[1:]) / width)
    below = sum(overlap.kept_by(x) for x in (highs[1:] - lows[:-1]) / width)
    hits, total = max(above, below), len(levels) - 1
    if not limits.BATCHES_IN_ORDER.reached_by(hits / total):
        return
    text = (
        f"in {hits / total:.0%} of {len(levels)} batches all targets lie "
        f"{'above' if hits != below else 'below'} those of the batch before; a batch spans "
        f"{width / across:.0%} of their range"
    )
    yield finding(
        "Training batches come sorted by their target",
        _where(run),
        (counted(text, hits, total, limits.BATCHES_IN_ORDER, signal="samples"),),
        SHUFFLE,
    )


def _entropy(counts: Mapping[int, int]) -> float:
    total = sum(counts.values())
    return -sum(n / total * math.log(n / total) for n in counts.values() if n)


def _labels(run: Run) -> Sequence[Mapping[int, int]]:
    """What the losses were told, batch by batch; with several losses per batch, as in adversarial
    training, what was loaded.
    """
    told = (run.samples or Samples()).labels
    batches = training_batches(run)
    num = max([len(batches), *(b.index + 1 for b in batches)])
    if told and (not num or limits.TARGETS_PER_BATCH.kept_by(len(told) / num)):
        return told
    loaded = [[t["counts"] for t in b.tensors if t.get("counts")] for b in batches]
    return [counts[0] for counts in loaded if len(counts) == 1]


def _period(run: Run, num: int) -> int:
    """After how many batches the first one comes again."""
    batches = training_batches(run)
    for i, batch in enumerate(batches):
        if i and batch.fingerprints and batch.fingerprints == batches[0].fingerprints:
            return i
    first = [b for b in batches if b.epoch == 0 and b.source != "model"]
    return min(len(first) or num, num)


def _where(run: Run) -> tuple[Site, ...]:
    loaders = loader_sites(run)
    if loaders:
        return loaders[:2]
    rows = run.made_tensors
    ranges = [(math.prod(r.shape), r.site) for r in rows if r.op == "arange"]
    size = max((length for length, _ in ranges), default=0)
    ordered = [site for length, site in ranges if length == size > MIN_TABLE]
    indexed = [r.site for r in rows if r.op in ("__getitem__", "index_select")]
    return locate(*ordered[:1], *feeding_sites(run)[:1], *indexed[:1])[:4]

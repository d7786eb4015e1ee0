"""Rows of the training set that the sampler never draws

## What it sees
Under diagnose, the rows that the sampler of every training loader gives. Fires when those of the
whole run are exactly the first k of the data set, k is at most half of its length, and an epoch
draws at least twice as many rows as there are different ones: the sampler means more than it can
reach. At the end of the first epoch.

## Why it matters
The model learns k rows by heart. The rest of the data is never seen.

## Looks like
The training loss falls to nothing within an epoch, and validation stays near chance.

## Example
    weights = 1 / torch.bincount(labels).float()
    sampler = WeightedRandomSampler(weights, num_samples=len(labels))

## Use instead
    weights = 1 / torch.bincount(labels).float()
    sampler = WeightedRandomSampler(weights[labels], num_samples=len(labels))

## Confirm it
Count the rows that the sampler gives: len(set(sampler)) is the number of weights, not of rows.

## False alarms
A sampler of a part of the rows (a split, a few for a first try) gives each once in an epoch, or as
many as there are of them. Weights for each row reach rows all over the data set, however uneven
they are. A data set that repeats itself is as long as its repetitions.

## References
The documentation of torch.utils.data.WeightedRandomSampler: weights are a sequence, "not necessary
summing up to one", of the samples, and as many as are given are drawn from.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.evidence.limits import pipeline as limits
from sawbones.schema import Finding, Fix, Run
from sawbones.trace.locate import locate
from sawbones.trace.made_lines import made_at

NEEDS = ("drawn", "loaders", "batches")
USES = ("made_tensors",)
EXPLAINS = ("evaluation.overfitting", "data.class-imbalance", "data.degenerate-samples")
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    epochs: dict[str, int] = {}
    for batch in run.batches:
        if batch.phase == "train":
            epochs[batch.source] = max(epochs.get(batch.source, 0), batch.epoch + 1)
    loaders = {o.index: o for o in run.loaders if o.source in epochs and o.size}
    judged = [(loaders[d.loader], d) for d in run.drawn or () if d.loader in loaders]
    if not judged:
        raise NothingToJudge("no loader of a data set with a length was trained on")
    for loader, drawn in judged:
        size, per_epoch = loader.size or 0, drawn.draws / epochs[loader.source]
        are_first = drawn.lowest == 0 and drawn.highest + 1 == drawn.different
        reached = drawn.different / size
        if not are_first or not limits.ROWS_REACHED.kept_by(reached):
            continue
        if not limits.DRAWS_OF_A_ROW.reached_by(per_epoch / drawn.different):
            continue
        sites = made_at(run, shapes={(drawn.different,)})
        made = sites[-1] if sites else None
        yield finding(
            f"The sampler draws the first {drawn.different} rows only, of {size}",
            locate(loader, made),
            (
                exact(
                    f"{size - drawn.different} of {size} rows of the training set are never drawn; "
                    f"rows 0 to {drawn.highest} are, {drawn.draws / drawn.different:.0f} times "
                    "each on average",
                    size - drawn.different,
                    signal="drawn",
                    steps=(0, max(run.num_steps - 1, 0)),
                ),
            ),
            Fix(
                "Give the sampler one weight for each row of the data set: weights[labels], not "
                "one for each class."
            ),
            at_most="likely",  # someone may want to repeat these rows
        )
        return

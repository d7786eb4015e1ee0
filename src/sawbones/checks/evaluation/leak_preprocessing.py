"""Statistics that were fitted before the split

## What it sees
Mean and spread of all values of one whole epoch of training batches and of one whole evaluation. Suspected when both together have
mean 0 and spread 1 to within 1e-5 while the training part alone has not: the scaler has seen the validation samples.
`sawbones audit leaks` does the same for every column of data sets, for ranges (0 to 1 reached only by both together), and compares
a scaler, imputer or vocabulary given by `--fitted FILE` with the training part and with all parts; there it is a proof.

## Why it matters
The test rows have spoken through the scaler, the vocabulary or the imputer before the model was trained. With few rows, or with
a shift between the splits, the score is better than in use.

## Looks like
Nothing in the training shows it. The training part is standardised almost, but not exactly.

## Example
    features = StandardScaler().fit_transform(all_features)
    train, test = features[:8000], features[8000:]

## Use instead
    scaler = StandardScaler().fit(all_features[:8000])
    train, test = scaler.transform(all_features[:8000]), scaler.transform(all_features[8000:])

## Confirm it
No experiment is needed: joint moments of exactly 0 and 1 do not come about by chance. What it costs is shown by a score with the
scaler fitted on the training part alone.

## False alarms
Both parts standardised each by its own moments have a joint mean of 0 too; the training part's own is 0 as well, and nothing is
said. In a run it stays a suspicion: with many samples the score hardly moves. In `audit leaks` a feature that lies between 0 and 1
by nature is only suspected, and only where both ends are reached once.

## References
Kapoor and Narayanan, "Leakage and the reproducibility crisis in machine-learning-based science" (2023), leak L1.2. scikit-learn
user guide, "Common pitfalls: data leakage during pre-processing".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from sawbones.schema import Batch, Evidence, Finding, Fix, Run
from sawbones.stats.moments import Moments, joint, standardised_together
from sawbones.stats.overlaps import repeat_share
from sawbones.stats.splits import Split, loader_site, splits

NEEDS = ("batches", "validation", "steps")
EXPLAINS = ()
EXPERIMENT = None
LEAST_SAMPLES = 50


def check(run: Run) -> Iterator[Finding]:
    for part in splits(run):
        for source, batches in part.sources().items():
            if source == "model" or source in part.trained_sources:
                continue
            found = _together(part, batches)
            if found is None:
                continue
            own, both = found
            text = (
                f"mean {both.mean:.1e} and spread {both.spread:.6f} over training and validation together, {own.mean:.2e} and "
                f"{own.spread:.6f} over training alone"
            )
            sites = [*(loader_site(run, s) for s in sorted(part.trained_sources)), loader_site(run, source)]
            yield Finding(
                "evaluation.leak-preprocessing", "suspected", 0.45, "The inputs were standardised before they were split",
                tuple(dict.fromkeys(s for s in sites if s is not None)),
                (Evidence(text, "batches", (), abs(both.mean), abs(own.mean)),),
                Fix("Fit the scaler on the training part alone and apply it to the rest."),
            )  # fmt: skip
            return


def _together(part: Split, evaluated: Sequence[Batch]) -> tuple[Moments, Moments] | None:
    (source, *more) = sorted(part.trained_sources)
    if more:
        return None
    own, other = _of_a_round(part.trained, source), _of_a_round(evaluated, evaluated[0].source)
    both = standardised_together(own, [other]) if own is not None and other is not None else None
    return (own, both) if own is not None and both is not None else None


def _of_a_round(batches: Sequence[Batch], source: str) -> Moments | None:
    """Moments of the first tensor of real numbers over the first pass through a loader, each sample once."""
    first = min((b.epoch for b in batches if b.source == source), default=0)
    chosen = [b for b in batches if b.source == source and b.epoch == first]
    prints = [f for b in chosen for f in b.fingerprints]
    if len(prints) < LEAST_SAMPLES or repeat_share(prints) > 0:
        return None
    found = []
    for batch in chosen:
        one = next((t for t in batch.tensors if str(t.get("dtype", "")).startswith(("float", "double"))), None)
        count = math.prod(one["shape"]) if one else 0
        if one is None or "std" not in one or one.get("nonfinite") or count < 2 or count > 1 << 20:
            return None
        found.append(Moments(count, float(one["mean"]), float(one["std"]) * math.sqrt((count - 1) / count)))
    return joint(found)

"""Statistics that were fitted before the split

## What it sees
The rows of numbers that the model is given in training and in evaluation, each once, and what the
script keeps: an estimator of scikit-learn that counts the rows it was fitted to, or a mean and a
spread that are those of a whole array it still holds. Proven when such a fit saw as many rows as
training and evaluation have together, and over these together the columns have mean 0 and spread 1
(or mean 0, or run from 0 to 1) to rounding, and over the training rows alone they have not. For
windows of a series the same is said of the array that is scaled as a whole and holds the steps of
all windows. Without a fit that is kept the moments of whole batches are only suspected. `sawbones
audit leaks` does the same for every column of data sets, for ranges, and compares a scaler, imputer
or vocabulary given by `--fitted FILE` with the training part and with all parts.

## Why it matters
The test rows have spoken through the scaler, the vocabulary or the imputer before the model was
trained. With few rows, or with a shift between the splits, the score is better than in use.

## Looks like
Nothing in the training shows it. The training part is standardised almost, but not exactly.

## Example
    features = StandardScaler().fit_transform(all_features)
    train, test = features[:8000], features[8000:]

## Use instead
    scaler = StandardScaler().fit(all_features[:8000])
    train, test = scaler.transform(all_features[:8000]), scaler.transform(all_features[8000:])

## Confirm it
No experiment is needed: joint moments of exactly 0 and 1 do not come about by chance. What it costs
is shown by a score with the scaler fitted on the training part alone.

## False alarms
A scaler fitted on the training part makes that part's own moments 0 and 1, and nothing is said; so
it is where each part has its own scaler. Folds of a cross validation have a scaler each, and their
rows together are not standardised. Data that their maker standardised as a whole before anybody
split them leave no fit behind: a suspicion, no more. In `audit leaks` a feature that lies between 0
and 1 by nature is only suspected, and only where both ends are reached once.

## References
Kapoor and Narayanan, "Leakage and the reproducibility crisis in machine-learning-based science"
(2023), leak L1.2. scikit-learn user guide, "Common pitfalls: data leakage during pre-processing".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sawbones.schema import Batch, Evidence, Finding, Fix, Run, Site
from sawbones.stats.loss_calls import places
from sawbones.stats.moments import Moments, joint, standardised_together
from sawbones.stats.overlaps import repeat_share
from sawbones.stats.splits import Split, loader_site, splits

NEEDS = ("batches", "validation", "steps")
EXPLAINS = ()
EXPERIMENT = None
LEAST_SAMPLES = 50


def check(run: Run) -> Iterator[Finding]:
    kept = _kept_fit(run)
    if kept is not None:
        yield kept
        return
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
            sites = [
                *(loader_site(run, s) for s in sorted(part.trained_sources)),
                loader_site(run, source),
            ]
            yield Finding(
                "evaluation.leak-preprocessing",
                "suspected",
                0.45,
                "The inputs were standardised before they were split",
                tuple(dict.fromkeys(s for s in sites if s is not None)),
                (Evidence(text, "batches", (), abs(both.mean), abs(own.mean)),),
                Fix("Fit the scaler on the training part alone and apply it to the rest."),
            )
            return


def _kept_fit(run: Run) -> Finding | None:
    """A fit that is still held saw as many rows as both parts have together, and their columns bear
    its mark.
    """
    seen = run.facts.get("fitted") or {}
    holders = [
        h for h in seen.get("holders") or () if h["rows"] == seen["rows"] > seen["train_rows"]
    ]
    fits = [{**h, "names": names} for h in holders if (names := _computed(run, h))]
    signs = [
        s
        for s in seen.get("signs") or ()
        if s["kind"] == "standardised" or any(h["cls"] for h in fits)
    ]
    if not fits or not signs:
        return None
    fit, sign = fits[0], signs[0]
    marked = {
        "standardised": "mean 0 and spread 1",
        "centred": "mean 0",
        "ranged": "a range of exactly 0 to 1",
    }[sign["kind"]]
    what = (
        f"A {fit['cls']}" if fit["cls"] else f"The mean and spread in {' and '.join(fit['names'])}"
    )
    rows, train = seen["rows"], seen["train_rows"]
    texts = (
        f"{what} saw {rows} rows; {train} rows are trained on, {rows - train} others are evaluated",
        f"{sign['columns']} of {sign['of']} columns have {marked} over all {rows} rows (off by {sign['off']:.0e}), not over the "
        f"{train} trained on (off by {sign['own_off']:.1e})",
    )
    return Finding(
        "evaluation.leak-preprocessing",
        "proven",
        0.95,
        "Statistics were fitted on the evaluation rows too",
        _fit_sites(run, fit),
        (
            Evidence(texts[0], "fitted", (), rows, train),
            Evidence(texts[1], "fitted", (), sign["own_off"], sign["off"]),
        ),
        Fix(
            "Split first, fit on the training part alone, and only apply what was fitted "
            "to the rest."
        ),
    )


def _computed(run: Run, fit: Mapping[str, Any]) -> list[str]:
    """What holds a fit. Where the array that a mean and a spread were taken from is gone, the lines
    that take both must be seen.
    """
    if not fit.get("assumed"):
        return list(fit["names"])
    held = set(fit["names"])
    means: set[str] = set()
    spreads: set[str] = set()
    for row in run.facts.get("source_lines") or ():
        names = held & set(re.findall(r"\w+", row["code"].partition("=")[0]))
        means |= names if "mean" in row["code"].partition("=")[2] else set()
        spreads |= names if row["kind"] == "fit" and "fit" not in row["name"] else set()
    both = sorted(means | spreads)
    return both if means and spreads and len(both) >= 2 else []


def _fit_sites(run: Run, fit: Mapping[str, Any]) -> tuple[Site, ...]:
    """Lines that fit something: those that name what is held, then calls of a fit, then spreads
    that are computed.
    """
    lines = [r for r in run.facts.get("source_lines") or () if r["kind"] == "fit"]
    if fit["cls"]:
        lines = [r for r in lines if "fit" in r["name"]] or lines

    def rank(row: Mapping[str, Any]) -> tuple[bool, bool, bool]:
        words = set(
            re.findall(r"\w+", row["code"].partition("=")[0])
        )  # what the line sets, or calls upon
        named = any(name in row["code"] for name in fit["names"])
        return (not words & set(fit["names"]), not named, "fit" not in row["name"])

    return places(
        *(Site(r["file"], r["line"], r["function"], r["code"]) for r in sorted(lines, key=rank))
    )


def _together(part: Split, evaluated: Sequence[Batch]) -> tuple[Moments, Moments] | None:
    (source, *more) = sorted(part.trained_sources)
    if more:
        return None
    own, other = _of_a_round(part.trained, source), _of_a_round(evaluated, evaluated[0].source)
    both = standardised_together(own, [other]) if own is not None and other is not None else None
    return (own, both) if own is not None and both is not None else None


def _of_a_round(batches: Sequence[Batch], source: str) -> Moments | None:
    """Moments of the first tensor of real numbers over the first pass through a loader, each sample
    once.
    """
    first = min((b.epoch for b in batches if b.source == source), default=0)
    chosen = [b for b in batches if b.source == source and b.epoch == first]
    prints = [f for b in chosen for f in b.fingerprints]
    if len(prints) < LEAST_SAMPLES or repeat_share(prints) > 0:
        return None
    found = []
    for batch in chosen:
        one = next(
            (t for t in batch.tensors if str(t.get("dtype", "")).startswith(("float", "double"))),
            None,
        )
        count = math.prod(one["shape"]) if one else 0
        if one is None or "std" not in one or one.get("nonfinite") or count < 2 or count > 1 << 20:
            return None
        found.append(
            Moments(count, float(one["mean"]), float(one["std"]) * math.sqrt((count - 1) / count))
        )
    return joint(found)

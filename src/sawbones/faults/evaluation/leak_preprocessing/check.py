"""Statistics that were fitted before the split

## What it sees
The rows of numbers that the model is given in training and in evaluation, each once, and what the
script keeps: an estimator of scikit-learn that counts the rows it was fitted to, or a mean and a
spread that are those of a whole array it still holds. Proven when such a fit saw as many rows as
training and evaluation have together, and over these together the columns have mean 0 and spread 1
(or mean 0, or run from 0 to 1) to rounding, and over the training rows alone they have not. For
windows of a series the same is said of the array that is scaled as a whole and holds the steps of
all windows.

Proven as well, whatever the code looks like, by changing the source: half of the rows that are only
evaluated get other values at the line where rows and labels are complete, and the script runs again
from the same seed. Training rows that stand before all of them must then be the same bit for bit;
the first value that is not, names the line. Of windows, the series is changed from a moment on
behind all training windows. Without a fit that is kept the moments of whole batches are only
suspected. `sawbones audit leaks` does the same for every column of data sets, for ranges, and
compares a scaler, imputer or vocabulary given by `--fitted FILE` with the training part and with
all parts.

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
`sawbones diagnose` runs the script again with other values in rows that are only evaluated, up to
the first evaluation. Joint moments of exactly 0 and 1 need no experiment: they do not come about by
chance. What it costs is shown by a score with the scaler fitted on the training part alone.

## False alarms
A scaler fitted on the training part makes that part's own moments 0 and 1, and nothing is said; so
it is where each part has its own scaler. Folds of a cross validation have a scaler each, and their
rows together are not standardised. Data that their maker standardised as a whole before anybody
split them leave no fit behind: a suspicion, no more. Where the split or the labels of training rows
move with the change, or no row of the batches is recognised, nothing follows from it. A script that
puts a table together from rows and labels may have scaled them as a whole to make up its data: what
moves only by a change before that table is a suspicion. A process
over time may carry a change to later rows, never to earlier ones. In `audit leaks` a feature that lies between 0
and 1 by nature is only suspected, and only where both ends are reached once.

## References
Kapoor and Narayanan, "Leakage and the reproducibility crisis in machine-learning-based science"
(2023), leak L1.2. scikit-learn user guide, "Common pitfalls: data leakage during pre-processing".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sawbones.evidence import NothingToJudge, compared, context, exact, finding
from sawbones.evidence.limits import evaluation as limits
from sawbones.schema import Batch, Finding, Fix, Run, Site, SourceLine
from sawbones.schema.fitted import FitHolder, Fitted
from sawbones.schema.sources import Moved
from sawbones.stats.moments import Moments, joint, standardised_together
from sawbones.stats.overlaps import repeat_share
from sawbones.stats.splits import Split, splits
from sawbones.trace.feeding import built_loaders
from sawbones.trace.locate import locate

NEEDS = ("batches", "validation", "steps")
USES = ("fitted", "source_lines", "loaders", "source_change", "restored")
EXPLAINS = ()
EXPERIMENT = None
MIN_SAMPLES = 50  # of each part: the moments of fewer come near 0 and 1 by chance
MAX_VALUES = 1 << 20  # of one batch: beyond, its mean is not exact any more
MARKS = {
    "standardised": "mean 0 and spread 1",
    "centred": "mean 0",
    "ranged": "a range of exactly 0 to 1",
}

_OwnAndOther = tuple[Moments, Moments]


def check(run: Run) -> Iterator[Finding]:
    read = [
        (part, source, both)
        for part in splits(run)
        for source, batches in part.sources().items()
        if source != "model" and source not in part.trained_sources
        if (both := _moments(part, batches)) is not None
    ]
    trial = run.source_change.features
    tried = trial.outcome in ("moved", "kept")
    if not run.fitted.holders and not read and not tried:
        why = f"; other rows in evaluation: {trial.why}" if trial.why else ""
        raise NothingToJudge(
            f"no fit is kept, and no real numbers of two loaders were read in whole{why}"
        )
    if trial.outcome == "moved":
        yield _moved(trial)
        return
    yield from list(_kept_fit(run, run.fitted)) or (() if tried else _standardised(run, read))


def _moved(trial: Moved) -> Finding:
    """Rows that are only evaluated were changed, and training rows moved with them."""
    what = f"; first moved: {trial.name}" if trial.name else ""
    return finding(
        "What the model is trained on depends on rows that are only evaluated",
        locate(trial.site, trial.caller, trial.entered),
        (
            exact(
                f"{trial.changed} evaluated rows were changed where they enter the script: "
                f"{trial.moved} of {trial.compared} training samples changed with them{what}",
                trial.moved,
                expected=0,
                signal="source_change",
            ),
        ),
        Fix(
            "Split first, fit on the training part alone, and only apply what was fitted "
            "to the rest."
        ),
        at_most="suspected" if trial.is_making else "proven",
    )


def _standardised(run: Run, read: Sequence[tuple[Split, str, _OwnAndOther]]) -> Iterator[Finding]:
    for part, source, (own, other) in read:
        both = standardised_together(own, [other])
        if both is None:
            continue
        text = (
            f"mean {both.mean:.1e} and spread {both.spread:.6f} over training and validation "
            f"together, {own.mean:.2e} and {own.spread:.6f} over training alone"
        )
        reading = compared(
            text,
            abs(both.mean),
            limits.JOINT_MEAN,
            below=True,
            expected=abs(own.mean),
            signal="batches",
        )
        yield finding(
            "The inputs were standardised before they were split",
            built_loaders(run, *sorted(part.trained_sources), source),
            (reading,),
            Fix("Fit the scaler on the training part alone and apply it to the rest."),
            at_most="suspected",  # their maker may have done it, before anybody split them
        )
        return


def _kept_fit(run: Run, seen: Fitted) -> Iterator[Finding]:
    """A fit that is still held saw as many rows as both parts have together, and their columns bear
    its mark.
    """
    fits = [
        replace(h, names=tuple(names))
        for h in seen.holders
        if h.rows == seen.rows and (names := _computed(run, h))
    ]
    by_class = any(h.cls for h in fits)
    signs = [s for s in seen.signs if s.kind == "standardised" or by_class]
    if not fits or not signs:
        return
    fit, sign = fits[0], signs[0]
    rows, train = seen.rows, seen.train_rows
    what = f"A {fit.cls}" if fit.cls else f"The mean and spread in {' and '.join(fit.names)}"
    saw = (
        f"{what} saw {rows} rows; {train} rows are trained on, {rows - train} others are evaluated"
    )
    mark = (
        f"{sign.columns} of {sign.of} columns have {MARKS[sign.kind]} over all {rows} "
        f"rows (off by {sign.off:.0e}), not over the {train} trained on (off by "
        f"{sign.own_off:.1e})"
    )
    if rows - train > 0:
        yield finding(
            "Statistics were fitted on the evaluation rows too",
            _fit_sites(run, fit),
            (
                exact(saw, rows, expected=train, signal="fitted"),
                context(mark, signal="fitted", value=sign.own_off, expected=sign.off),
            ),
            Fix(
                "Split first, fit on the training part alone, and only apply what was fitted "
                "to the rest."
            ),
        )


def _words_set(code: str) -> set[str]:
    """What a line of source sets, or calls upon."""
    return set(re.findall(r"\w+", code.partition("=")[0]))


def _computed(run: Run, fit: FitHolder) -> list[str]:
    """What holds a fit. Where the array that a mean and a spread were taken from is gone, the lines
    that take both must be seen.
    """
    if not fit.assumed:
        return list(fit.names)
    means: set[str] = set()
    spreads: set[str] = set()
    for row in run.source_lines:
        names = set(fit.names) & _words_set(row.site.code)
        if "mean" in row.site.code.partition("=")[2]:
            means |= names
        if row.kind == "fit" and "fit" not in row.name:
            spreads |= names
    both = sorted(means | spreads)
    return both if means and spreads and len(both) >= 2 else []


def _fit_sites(run: Run, fit: FitHolder) -> tuple[Site, ...]:
    """Lines that fit something: those that name what is held, then calls of a fit, then spreads
    that are computed.
    """
    lines = [r for r in run.source_lines if r.kind == "fit"]
    if fit.cls:
        lines = [r for r in lines if "fit" in r.name] or lines

    def rank(row: SourceLine) -> tuple[bool, bool, bool]:
        named = any(name in row.site.code for name in fit.names)
        sets = bool(_words_set(row.site.code) & set(fit.names))
        return (not sets, not named, "fit" not in row.name)

    return locate(*(row.site for row in sorted(lines, key=rank)))


def _moments(part: Split, evaluated: Sequence[Batch]) -> _OwnAndOther | None:
    """Of training and of evaluation, where one loader feeds each."""
    (source, *more) = sorted(part.trained_sources)
    own = _of_a_round(part.trained, source) if not more else None
    other = _of_a_round(evaluated, evaluated[0].source)
    return (own, other) if own is not None and other is not None else None


def _of_a_round(batches: Sequence[Batch], source: str) -> Moments | None:
    """Moments of the first tensor of real numbers over the first pass through a loader, each sample
    once.
    """
    first = min((b.epoch for b in batches if b.source == source), default=0)
    chosen = [b for b in batches if b.source == source and b.epoch == first]
    prints = [f for b in chosen for f in b.fingerprints]
    if len(prints) < MIN_SAMPLES or repeat_share(prints) > 0:
        return None
    found = []
    for batch in chosen:
        real = [t for t in batch.tensors if str(t.get("dtype")).startswith(("float", "double"))]
        count = math.prod(real[0]["shape"]) if real else 0
        if not 2 <= count <= MAX_VALUES or "std" not in real[0] or real[0].get("nonfinite"):
            return None
        spread = float(real[0]["std"]) * math.sqrt((count - 1) / count)
        found.append(Moments(count, float(real[0]["mean"]), spread))
    return joint(found)

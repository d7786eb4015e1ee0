"""Validation inputs that are prepared differently from training inputs

## What it sees
Mean and spread of the real-valued inputs of the model, over all values and per feature or channel,
in training and in evaluation. Fires when the spread differs by a factor of 2.5 or more, or the mean
by 3 training deviations or more, and by far more than training batches differ among themselves. A
single feature counts from a factor, or from deviations, of 8. With experiments also this: evaluated
rows are made copies of training rows where they enter the script, and the model must be given the
same for both.

## Why it matters
The model is judged on inputs it has never seen the like of: the score says nothing about the model.

## Looks like
Training goes well and validation is close to chance from the start.

## Example
    train = TensorDataset((images[:800] / 255 - 0.5) / 0.25, labels[:800])
    val = TensorDataset(images[800:], labels[800:])

## Use instead
    train = TensorDataset((images[:800] / 255 - 0.5) / 0.25, labels[:800])
    val = TensorDataset((images[800:] / 255 - 0.5) / 0.25, labels[800:])

## Confirm it
Both inputs are measured where they enter the model. Proven where a copy of a training row reaches
the model otherwise in evaluation, while copies within training, and within evaluation, reach it
alike.

## False alarms
Noise, mixing and erasing change the spread of training inputs by less than a factor of two. A later
stretch of a time series may have another mean: three deviations are beyond that. It may spread less
than the whole series did, but not so a single window. Where the script holds the rows of both parts
in one container as the model is given them, or in two that one scale and offset makes of a third,
they are prepared alike, however far apart they lie. Samplers that feed noise to a generator are
judged per input tensor and shape. Inputs that are made from the model's answer to the call before,
as by a sampler or a forecast that goes on from itself, were never prepared, nor were the others that
this line gives it. Axes that were fitted to few rows of many columns follow the
noise of these rows, which then spread far more along them than any other: copies of rows show that
both parts are prepared alike, and where there was no time to try that, it is a suspicion. One or
two made-up examples before the first step, as for a summary of the model, are no evaluation. Random
augmentation, features of neighbouring rows and encodings by fold make equal rows differ in training
already: then copies decide nothing.

## References
Training-serving skew: Breck et al., "Data validation for machine learning" (2019).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from sawbones.evidence import Limit, NothingToJudge, compared, exact, finding
from sawbones.evidence.limits import TINY
from sawbones.evidence.limits import evaluation as limits
from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.schema.evaluation import ModelInput
from sawbones.schema.sources import PreparedTwice
from sawbones.stats.evaluations import model_inputs
from sawbones.stats.moments import spread_factor, standard_distance
from sawbones.stats.series import Floats
from sawbones.stats.splits import told_apart
from sawbones.trace.feeding import built_loaders
from sawbones.trace.given_lines import given_lines
from sawbones.trace.locate import locate

NEEDS = ("validation", "evaluation", "steps")
USES = ("made_tensors", "loaders", "source_lines", "source_change", "sources")
EXPLAINS = ("evaluation.overfitting", "evaluation.collapsed-prediction")
EXPERIMENT = None
MIN_BATCHES = 4  # of training, so that it is known how they differ among themselves
MIN_STEPS = 20  # before the share of steps with an evaluation means anything
MIN_FEATURES = 2
MIN_VALUES = 16  # of a call: the spread of one state of a few numbers is no spread of a population
MADE = ("tensor", "as_tensor", "from_numpy", "stack", "cat", "div", "float", "to")

_Rows = Sequence[ModelInput]


def check(run: Run) -> Iterator[Finding]:
    trained = _grouped(model_inputs(run, "train"))
    asked = list(model_inputs(run, "eval"))
    # a sampler or a forecast that goes on from its own answers: nothing there was prepared
    fed_back = {row.site for row in asked if row.fed_back}
    judged = _grouped(row for row in asked if not _rehearses(row) and row.site not in fed_back)
    both = [
        (trained[key], rows)
        for key, rows in judged.items()
        if len(trained.get(key, ())) >= MIN_BATCHES
    ]
    inside = limits.PASSES_PER_STEP.passed_by(len(run.evaluation.passes) / max(run.num_steps, 1))
    trial = run.source_change.paths
    if trial.outcome == "moved":
        yield _prepared_twice(run, trial)
        return
    if trial.outcome == "kept" or run.sources.is_prepared_alike:
        return  # what differs between the parts is in the rows themselves
    if not both or (inside and run.num_steps > MIN_STEPS):
        raise NothingToJudge("no real-valued input of the model in training and in an evaluation")
    for before, rows in both:
        reading = _overall(before, rows) or _by_feature(before, rows)
        if reading is not None:
            yield finding(
                "Evaluation inputs are prepared differently from training inputs",
                _sites(run, rows),
                (reading,),
                Fix(
                    "Apply the same preprocessing (with the statistics of the training set) "
                    "to validation inputs."
                ),
                at_most="suspected" if trial.outcome == "open" else "proven",
            )
            return


def _prepared_twice(run: Run, trial: PreparedTwice) -> Finding:
    """Copies of training rows reached the model otherwise in evaluation."""
    called = [e.site for e in run.of_kind("forward") if e.phase == "eval" and e.step > 0]
    text = (
        f"{trial.compared} evaluated rows were made copies of training rows where they enter the "
        f"script: the model is given other values for {trial.moved} of them, in "
        f"{trial.num_columns} of {trial.width} columns (column {trial.column} of one row: "
        f"{trial.trained:.4g} in training, {trial.evaluated:.4g} in evaluation)"
    )
    return finding(
        "The same row is prepared differently for evaluation than for training",
        locate(trial.site, *called[:1]),
        (exact(text, trial.moved, expected=0, signal="source_change"),),
        Fix(
            "Fit scalers, encoders and vocabularies once, on the training part, and apply the "
            "fitted ones to every other part."
        ),
    )


def _rehearses(row: ModelInput) -> bool:
    """A made-up example or two before the first step: shapes are tried, a summary is printed, a
    graph is drawn.
    """
    return row.step == 0 and bool(row.shape) and row.shape[0] <= 2


def _grids(rows: _Rows) -> set[tuple[str, str]]:
    """Inputs of one number each that go with no sample, as there are not as many as of another
    input: the times at which an answer is asked for.
    """
    num: dict[tuple[str, int, Site | None], set[int]] = {}
    for row in rows:
        if row.shape:
            num.setdefault((row.model, row.step, row.site), set()).add(row.shape[0])
    return {
        (row.model, row.path)
        for row in rows
        if len(row.shape) == 1 and len(num[row.model, row.step, row.site]) > 1
    }


def _grouped(rows: Iterable[ModelInput]) -> dict[tuple[str, str, int], list[ModelInput]]:
    """A part of the model that is called by itself, as in sampling, is given other things."""
    rows = list(rows)
    grids = _grids(rows)
    found: dict[tuple[str, str, int], list[ModelInput]] = {}
    for row in rows:
        if row.mean is None or row.nonfinite or math.prod(row.shape) < MIN_VALUES:
            continue
        if (row.model, row.path) not in grids:
            found.setdefault((row.model, row.path, len(row.shape)), []).append(row)
    return found


def _reading(text: str, value: float, limit: Limit, rows: _Rows) -> Evidence:
    steps = [r.step for r in rows[:3]]
    return compared(text, value, limit, signal="evaluation", steps=steps)


def _beyond(limit: Limit, distance: float, usual: float) -> bool:
    """By far more than training batches differ among themselves."""
    return limit.reached_by(distance / max(usual, TINY))


def _overall(before: _Rows, rows: _Rows) -> Evidence | None:
    means, spreads = _column(before, "mean"), _column(before, "std")
    mean, spread = (float(np.median(_column(rows, name))) for name in ("mean", "std"))
    usual_mean, usual = float(np.median(means)), float(np.median(spreads))
    if usual <= 0:
        return None
    factor, widest = float(spread_factor(spread, usual)), spread_factor(spreads, usual).max()
    if (
        limits.SPREAD_FACTOR.reached_by(factor)
        and _beyond(limits.BEYOND_BATCH_SPREAD, factor, widest)
        and not _samples_alike(before, rows)
    ):
        text = (
            f"inputs spread by {spread:.3g} (mean {mean:.3g}) in evaluation and by "
            f"{usual:.3g} (mean {usual_mean:.3g}) in training"
        )
        return _reading(text, factor, limits.SPREAD_FACTOR, rows)
    distance = float(standard_distance(mean, usual_mean, usual))
    moves = float(np.abs(means - usual_mean).max())
    if limits.MEAN_DISTANCE.reached_by(distance) and _beyond(
        limits.BEYOND_BATCH_MEANS, abs(mean - usual_mean), moves
    ):
        text = (
            f"inputs average {mean:.3g} in evaluation and {usual_mean:.3g} +- {usual:.3g} in "
            "training"
        )
        return _reading(text, distance, limits.MEAN_DISTANCE, rows)
    return None


def _by_feature(before: _Rows, rows: _Rows) -> Evidence | None:
    width = len(rows[0].feature_mean)
    trained, judged = ([r for r in part if len(r.feature_mean) == width] for part in (before, rows))
    if not width or len(trained) < MIN_BATCHES:
        return None
    means, spreads = _column(trained, "feature_mean"), _column(trained, "feature_std")
    usual_mean, usual = np.median(means, 0), np.median(spreads, 0)
    mean, spread = (np.median(_column(judged, f"feature_{what}"), 0) for what in ("mean", "std"))
    factor, distance = spread_factor(spread, usual), standard_distance(mean, usual_mean, usual)
    widest = spread_factor(spreads, usual).max(0)
    moves, off = np.abs(means - usual_mean).max(0), np.abs(mean - usual_mean)
    alive = [i for i in range(width) if limits.LIVING_FEATURE.passed_by(min(usual[i], spread[i]))]
    if len(alive) < MIN_FEATURES:
        return None
    wider = [i for i in alive if _beyond(limits.BEYOND_BATCH_SPREAD, factor[i], widest[i])]
    odd = [
        i
        for i in alive
        if (i in wider and limits.SPREAD_FACTOR.reached_by(factor[i]))
        or (
            limits.MEAN_DISTANCE.reached_by(distance[i])
            and _beyond(limits.FEATURE_BEYOND_BATCH_MEANS, off[i], moves[i])
        )
    ]
    if len(odd) < MIN_FEATURES or limits.ODD_FEATURES.undercut_by(len(odd) / len(alive)):
        # One column in another unit: far wider or far off. A count of days goes on after the split,
        # but not so far.
        odd = [
            i
            for i in alive
            if (i in wider and limits.SINGLE_FEATURE.reached_by(spread[i] / usual[i]))
            or (
                limits.SINGLE_FEATURE.reached_by(distance[i])
                and _beyond(limits.SINGLE_BEYOND_BATCH_MEANS, off[i], moves[i])
            )
        ]
    nearly_all = limits.NEARLY_ALL_FEATURES.passed_by(len(odd) / len(alive))
    if not odd or (nearly_all and _samples_alike(before, rows)):
        return None
    one = max(odd, key=lambda i: factor[i] + distance[i])
    text = (
        f"{len(odd)} of {width} features differ; {one} has mean {mean[one]:.3g}, spread "
        f"{spread[one]:.3g} in evaluation, {usual_mean[one]:.3g} and {usual[one]:.3g} in training"
    )
    by_spread = limits.SPREAD_FACTOR.reached_by(factor[one])
    return (
        _reading(text, float(factor[one]), limits.SPREAD_FACTOR, rows)
        if by_spread
        else _reading(text, float(distance[one]), limits.MEAN_DISTANCE, rows)
    )


def _samples_alike(before: _Rows, rows: _Rows) -> bool:
    """Each sample spreads as ever, only together they do not: windows of a series that wanders, and
    a later stretch of it.
    """
    if not all(row.within is not None for row in (*before, *rows)):
        return False
    usual, now = (float(np.median(_column(part, "within"))) for part in (before, rows))
    return usual > 0 and limits.SAMPLES_ALIKE.undercut_by(float(spread_factor(now, usual)))


def _column(rows: _Rows, name: str) -> Floats:
    return np.array([getattr(r, name) for r in rows], np.float64)


def _sites(run: Run, rows: _Rows) -> tuple[Site, ...]:
    """Where the evaluation's loader was built when batches differ already there; else where the
    model is called.
    """
    _, evaluated = told_apart(run)
    called = rows[0].site
    built = built_loaders(run, *(b.source for b in evaluated))[:1]
    if built:
        loaded = [float(t["mean"]) for b in evaluated for t in b.tensors if "mean" in t]
        same = any(_is_same(mean, r.mean) for mean in loaded for r in rows if r.mean is not None)
        return locate(*built, called) if same else locate(called, *built)
    # the whole set is given to the model at once: where a tensor of that shape was made, outside of
    # any loop
    made = [
        made.site
        for made in run.made_tensors
        if made.op in MADE and made.shape == rows[0].shape and made.count == 1
    ]
    return locate(*made, *given_lines(run, called)[:1], called)


def _is_same(mean: float, other: float) -> bool:
    return limits.SAME_MEAN.kept_by(abs(mean - other) / (abs(other) + 1 / 10))

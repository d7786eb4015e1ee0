"""Validation inputs that are prepared differently from training inputs

## What it sees
Mean and spread of the real-valued inputs of the model, over all values and per feature or channel,
in training and in evaluation. Fires when the spread differs by a factor of 2.5 or more, or the mean
by 3 training deviations or more, and by far more than training batches differ among themselves. A
single feature counts from a factor, or from deviations, of 8.

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
No experiment: both inputs are measured where they enter the model.

## False alarms
Noise, mixing and erasing change the spread of training inputs by less than a factor of two. A later
stretch of a time series may have another mean: three deviations are beyond that. It may spread less
than the whole series did, but not so a single window. Samplers that feed noise to a generator are
judged per input tensor and shape. One or two made-up examples before the first step, as for a
summary of the model, are no evaluation.

## References
Training-serving skew: Breck et al., "Data validation for machine learning" (2019).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.evaluations import model_inputs, passes
from sawbones.stats.given_lines import given_lines
from sawbones.stats.loss_calls import as_site
from sawbones.stats.moments import spread_factor, standard_distance
from sawbones.stats.splits import loader_site, told_apart

NEEDS = ("validation", "evaluation", "steps")
EXPLAINS = ("evaluation.overfitting", "evaluation.collapsed-prediction")
EXPERIMENT = None
SPREAD = 2.5
SHIFT = 3.0
MADE = ("tensor", "as_tensor", "from_numpy", "stack", "cat", "div", "__truediv__", "float", "to")
ALONE = 8.0  # for a single feature
ALIKE = 1.5


def check(run: Run) -> Iterator[Finding]:
    trained = _grouped(model_inputs(run, "train"))
    judged = _grouped(row for row in model_inputs(run, "eval") if not _rehearses(row))
    if len(passes(run)) > 0.5 * max(run.num_steps, 1) and run.num_steps > 20:
        return  # passes without gradients inside of every step are part of training
    for key, rows in judged.items():
        before = trained.get(key)
        if before is None or len(before) < 4:
            continue
        said = _overall(before, rows) or _by_feature(before, rows)
        if said is None:
            continue
        text, value, expected = said
        yield Finding(
            "evaluation.preprocessing-mismatch",
            "likely",
            0.88,
            "Evaluation inputs are prepared differently from training inputs",
            _sites(run, rows),
            (
                Evidence(
                    text, "evaluation", tuple(int(r["step"]) for r in rows[:3]), value, expected
                ),
            ),
            Fix(
                "Apply the same preprocessing (with the statistics of the training set) "
                "to validation inputs."
            ),
        )
        return


def _rehearses(row: Mapping[str, Any]) -> bool:
    """A made-up example or two before the first step: shapes are tried, a summary is printed, a
    graph is drawn.
    """
    return int(row["step"]) == 0 and max(row["shape"][:1], default=9) <= 2


def _grouped(rows: Iterator[Mapping[str, Any]]) -> dict[tuple[Any, ...], list[Mapping[str, Any]]]:
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        if "mean" in row and not row.get("nonfinite"):
            found.setdefault((row["path"], len(row["shape"])), []).append(row)
    return found


def _overall(
    before: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]
) -> tuple[str, float, float] | None:
    means, spreads = _column(before, "mean"), _column(before, "std")
    mean, spread = float(np.median(_column(rows, "mean"))), float(np.median(_column(rows, "std")))
    usual_mean, usual = float(np.median(means)), float(np.median(spreads))
    if usual <= 0:
        return None
    wide = float(spread_factor(spreads, usual).max())
    factor = float(spread_factor(spread, usual))
    if factor >= SPREAD and factor >= 1.5 * wide and not _samples_alike(before, rows):
        text = (
            f"inputs spread by {spread:.3g} (mean {mean:.3g}) in evaluation and by "
            f"{usual:.3g} (mean {usual_mean:.3g}) in training"
        )
        return text, spread, usual
    moves = float(np.abs(means - usual_mean).max())
    if standard_distance(mean, usual_mean, usual) >= SHIFT and abs(mean - usual_mean) >= 4 * moves:
        return (
            (
                f"inputs average {mean:.3g} in evaluation and {usual_mean:.3g} +- {usual:.3g} "
                "in training"
            ),
            mean,
            usual_mean,
        )
    return None


def _by_feature(
    before: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]
) -> tuple[str, float, float] | None:
    width = len(rows[0].get("feature_mean") or ())
    with_features = [r for r in before if len(r.get("feature_mean") or ()) == width]
    judged = [r for r in rows if len(r.get("feature_mean") or ()) == width]
    if not width or len(with_features) < 4:
        return None
    means, spreads = (
        np.array([r["feature_mean"] for r in with_features]),
        np.array([r["feature_std"] for r in with_features]),
    )
    usual_mean, usual = np.median(means, 0), np.median(spreads, 0)
    mean = np.median(np.array([r["feature_mean"] for r in judged]), 0)
    spread = np.median(np.array([r["feature_std"] for r in judged]), 0)
    alive = (usual > 1e-6) & (spread > 1e-6)
    if alive.sum() < 2:
        return None
    factor, distance = spread_factor(spread, usual), standard_distance(mean, usual_mean, usual)
    wide = spread_factor(spreads, usual).max(0)
    moves = np.abs(means - usual_mean).max(0)
    shifted = (distance >= SHIFT) & (np.abs(mean - usual_mean) >= 3 * moves)
    odd = alive & (((factor >= SPREAD) & (factor >= 1.5 * wide)) | shifted)
    # One column in another unit: far wider or far off. A count of days goes on after the split, but
    # not so far.
    alone = alive & (
        ((spread >= ALONE * usual) & (factor >= 1.5 * wide))
        | (np.abs(mean - usual_mean) >= ALONE * np.maximum(usual, 4 * moves))
    )
    if odd.sum() < max(2, 0.3 * alive.sum()):
        odd = alone
    if not odd.any() or (odd.sum() > 0.8 * alive.sum() and _samples_alike(before, rows)):
        return None
    one = int(np.argmax(np.where(odd, factor + distance, -1)))
    text = (
        f"{int(odd.sum())} of {width} features differ; {one} has mean {mean[one]:.3g}, spread {spread[one]:.3g} in evaluation, "
        f"{usual_mean[one]:.3g} and {usual[one]:.3g} in training"
    )
    return text, float(mean[one]), float(usual_mean[one])


def _samples_alike(before: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> bool:
    """Each sample spreads as ever, only together they do not: windows of a series that wanders, and
    a later stretch of it.
    """
    if not all("within" in row for row in (*before, *rows)):
        return False
    usual = float(np.median(_column(before, "within")))
    return (
        usual > 0 and float(spread_factor(float(np.median(_column(rows, "within"))), usual)) < ALIKE
    )


def _column(rows: Sequence[Mapping[str, Any]], name: str) -> Any:
    return np.array([float(r[name]) for r in rows])


def _sites(run: Run, rows: Sequence[Mapping[str, Any]]) -> tuple[Site, ...]:
    """Where the evaluation's loader was built when batches differ already there; else where the
    model is called.
    """
    _, evaluated = told_apart(run)
    called = as_site(rows[0].get("site"))
    built = [loader_site(run, b.source) for b in evaluated if b.source != "model"][:1]
    same = any(
        abs(float(t["mean"]) - float(r["mean"])) <= 1e-4 + 1e-3 * abs(float(r["mean"]))
        for b in evaluated
        for t in b.tensors
        for r in rows
        if "mean" in t
    )
    places = [*built, called] if same else [called, *built]
    # the whole set is given to the model at once: where a tensor of that shape was made, outside of
    # any loop
    if not built:
        ops = [
            r
            for r in run.facts.get("data_ops") or ()
            if r.get("shape") == list(rows[0]["shape"]) and r.get("count") == 1
        ]
        places = [
            *(as_site(r["site"]) for r in ops if r["op"] in MADE),
            *given_lines(run, called)[:1],
            *places,
        ]
    return tuple(dict.fromkeys(p for p in places if p is not None))

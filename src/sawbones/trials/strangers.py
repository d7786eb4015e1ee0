"""Evaluated rows are made strangers: the training rows of their groups, or from their time on, are
overwritten with others where they enter the script, which then runs again from the same seed. The
score over these very rows, before and after, is the claimed number and the honest one.

That fewer rows are left to learn from costs something too: where the score fell, a third run
overwrites as many training rows that have nothing to do with them, and the fall counts from there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from sawbones.observe.populations.scores import score_of
from sawbones.schema import Run
from sawbones.schema.errors import SawbonesError
from sawbones.schema.held import Strangers
from sawbones.schema.populations import Population
from sawbones.schema.sources import RowChange, StrangerRows, WithoutFilled
from sawbones.trials.bench import Bench

RATE = 0.02  # of false alarms for one column
WORTH_A_CONTROL = 0.03  # by which the score must have fallen
LEAST_CLUSTERS = 4
NOT_CHANGED = "the rows could not be changed where they enter"
NOT_FOUND = "the evaluation was not found in the new run"
MOST_KNOWN = 0.5  # share of the rows of a pass that are trained on: more is a training score

Errors = npt.NDArray[np.float64]


def keep_apart(bench: Bench, run: Run) -> tuple[Strangers, ...]:
    """For evaluation.leak-group and evaluation.leak-temporal."""
    held = held_pass(scored_passes(run))
    if held is None:
        return ()
    return tuple(_one(bench, run, stranger, held) for stranger in run.sources.strangers)


def scored_passes(run: Run) -> list[Population]:
    """Evaluations with an error for each row. What was asked for is read off the labels of the
    source where they are known: scripts also compare answers in another unit, or unseen.
    """
    return [_with_errors(p, run.sources.answer_of) for p in run.populations.passes]


def _with_errors(one: Population, wanted_of: Mapping[int, float]) -> Population:
    wanted = np.array([wanted_of.get(h, math.nan) for h in one.hashes])
    if not one.given or not len(wanted) or not np.all(np.isfinite(wanted)):
        return one
    given = np.array(one.given)
    kind, errors = "classes", given != wanted
    if one.width == 1 and set(np.unique(wanted)) <= {0.0, 1.0}:
        cut = 0.5 if given.min() >= 0 and given.max() <= 1 else 0.0
        errors = (given > cut) != wanted
    elif one.width == 1:
        kind, errors = "quantity", np.abs(given - wanted)
    return replace(one, kind=kind, errors=tuple(errors.astype(float).tolist()))


def held_pass(passes: Sequence[Population]) -> Population | None:
    """The largest evaluation of rows that are not trained on."""
    held = [p for p in passes if p.errors and p.known < MOST_KNOWN]
    return max(held, key=lambda p: p.rows, default=None)


def _one(bench: Bench, run: Run, stranger: StrangerRows, held: Population) -> Strangers:
    told = Strangers(
        stranger.column,
        stranger.kind,
        stranger.groups,
        "refused",
        metric=held.kind,
    )
    cluster_of = dict(zip(stranger.strangers, stranger.clusters, strict=True))
    rows = [run.sources.row_of.get(h, -1) for h in held.hashes]
    places = [k for k, i in enumerate(rows) if i in cluster_of]
    clusters = [cluster_of[rows[k]] for k in places]
    if len(set(clusters)) < LEAST_CLUSTERS:
        return replace(told, why="too few of its groups are evaluated")
    before = np.array(held.errors)[places]
    after = _again(bench, run, stranger.overwritten, stranger.taken, held)
    if isinstance(after, str):
        return replace(told, why=after)
    size = 1.0 if held.kind == "classes" else max(float(before.mean()), 1e-12)
    lower = _least_rise(before, after[places], clusters) / size
    told = replace(
        told,
        rows=len(places),
        claimed=score_of(before, held.kind),
        honest=score_of(after[places], held.kind),
        lower=lower,
    )
    if lower < WORTH_A_CONTROL:
        return replace(told, outcome="kept")
    fewer = _again(bench, run, stranger.control, stranger.control_taken, held)
    if isinstance(fewer, str):
        return replace(told, why=fewer)
    lower = min(lower, _least_rise(fewer[places], after[places], clusters) / size)
    return replace(
        told,
        outcome="fell" if lower > 0 else "kept",
        control=score_of(fewer[places], held.kind),
        lower=lower,
    )


def _least_rise(before: Errors, after: Errors, clusters: Sequence[int]) -> float:
    """Of the error, at the lower end of its interval over groups: rows of one are no independent
    trials.
    """
    of_group: dict[int, list[float]] = {}
    for cluster, rise in zip(clusters, (after - before).tolist(), strict=True):
        of_group.setdefault(cluster, []).append(rise)
    means = np.array([np.mean(rises) for rises in of_group.values()])
    z = NormalDist().inv_cdf(1 - RATE / 2)
    return float(means.mean() - z * means.std(ddof=1) / math.sqrt(len(means)))


def without_filled(bench: Bench, run: Run) -> WithoutFilled | None:
    """For evaluation.leak-target: the score when columns that are filled in for one
    class alone are scrambled where they enter, in training and in evaluation.
    """
    filled, held = run.sources.filled, held_pass(scored_passes(run))
    if filled is None:
        return None
    told = WithoutFilled(filled.names, filled.filled, filled.rows)
    if held is None:
        return replace(told, why="no evaluation with known answers was seen")
    after = _changed(bench, run, held, "scrambled", (0,), columns=filled.columns)
    if isinstance(after, str):
        return replace(told, why=after)
    kind = held.kind
    claimed = score_of(np.array(held.errors), kind)
    return replace(told, metric=kind, claimed=claimed, honest=score_of(after, kind))


def _again(
    bench: Bench, run: Run, rows: tuple[int, ...], taken: tuple[int, ...], held: Population
) -> Errors | str:
    """Errors of the same pass in a run with these rows overwritten, or why there are none."""
    return _changed(bench, run, held, "copies", rows, taken=taken)


def _changed(
    bench: Bench, run: Run, held: Population, what: str, rows: tuple[int, ...], **more: Any
) -> Errors | str:
    if run.sources.place is None:
        return NOT_CHANGED
    change = RowChange(run.sources.place, run.sources.count, rows, what, **more)
    # What was wanted is known from the source: hearing every operator would take twice as long.
    errors = "" if run.sources.by_hand else _errors(bench, run, held, change, answers=True)
    return errors if len(errors) else _errors(bench, run, held, change, journal=True)


def _errors(
    bench: Bench, run: Run, held: Population, change: RowChange, **options: bool
) -> Errors | str:
    """Empty where the evaluation was not met again."""
    steps = None if run.ending.kind == "finished" else run.num_steps
    try:
        second = bench.rerun(
            max_steps=steps, sources=True, extra={"source_change": change}, **options
        )
    except SawbonesError as error:
        return str(error).splitlines()[0]
    if not second.sources.changed:
        return NOT_CHANGED
    same = [
        p for p in scored_passes(second) if p.site == held.site and p.rows == held.rows and p.errors
    ]
    if same:
        return np.array(same[-1].errors)
    return NOT_FOUND if "journal" in options else ""

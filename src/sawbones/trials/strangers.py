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
    held = held_passes(scored_passes(run))
    if not held:
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


def held_passes(passes: Sequence[Population]) -> list[Population]:
    """Evaluations of rows that are not trained on: the largest, and others of the same kind whose
    rows are not among those, as validation beside a test.
    """
    held = sorted((p for p in passes if p.errors and p.known < MOST_KNOWN), key=lambda p: -p.rows)
    found: list[Population] = []
    met: set[int] = set()
    for one in held:
        if one.kind == held[0].kind and met.isdisjoint(one.hashes):
            found.append(one)
            met.update(one.hashes)
    return found


def _one(bench: Bench, run: Run, stranger: StrangerRows, held: Sequence[Population]) -> Strangers:
    kind = held[0].kind
    told = Strangers(
        stranger.column,
        stranger.kind,
        stranger.groups,
        "refused",
        metric=kind,
        one_answer=stranger.one_answer,
    )
    cluster_of = dict(zip(stranger.strangers, stranger.clusters, strict=True))
    rows = [run.sources.row_of.get(h, -1) for one in held for h in one.hashes]
    places = [k for k, i in enumerate(rows) if i in cluster_of]
    clusters = [cluster_of[rows[k]] for k in places]
    if len(set(clusters)) < LEAST_CLUSTERS:
        return replace(told, why="too few of its groups are evaluated")
    before = _joined(held)[places]
    after = _again(bench, run, stranger.overwritten, stranger.taken, held)
    if isinstance(after, str):
        return replace(told, why=after)
    size = 1.0 if kind == "classes" else max(float(before.mean()), 1e-12)
    lower = _least_rise(before, after[places], clusters) / size
    told = replace(
        told,
        rows=len(places),
        claimed=score_of(before, kind),
        honest=score_of(after[places], kind),
        lower=lower,
    )
    if lower < (0 if told.one_answer else WORTH_A_CONTROL):
        return replace(told, outcome="kept")
    fewer = _again(bench, run, stranger.control, stranger.control_taken, held)
    if isinstance(fewer, str):
        return replace(told, why=fewer)
    lower = min(lower, _least_rise(fewer[places], after[places], clusters) / size)
    return replace(
        told,
        outcome="fell" if lower > 0 else "kept",
        control=score_of(fewer[places], kind),
        lower=lower,
    )


def _joined(passes: Sequence[Population]) -> Errors:
    return np.concatenate([np.array(p.errors) for p in passes])


def _least_rise(before: Errors, after: Errors, clusters: Sequence[int]) -> float:
    """Of the mean error, at the lower end of its interval over groups: rows of one are no
    independent trials.
    """
    rises = after - before
    _, codes = np.unique(clusters, return_inverse=True)
    off = np.bincount(codes, rises - rises.mean())
    groups = len(off)
    spread = math.sqrt(groups / (groups - 1) * float((off**2).sum())) / len(rises)
    return float(rises.mean()) - NormalDist().inv_cdf(1 - RATE / 2) * spread


def without_filled(bench: Bench, run: Run) -> WithoutFilled | None:
    """For evaluation.leak-target: the score when columns that are filled in for one
    class alone are scrambled where they enter, in training and in evaluation.
    """
    filled, held = run.sources.filled, held_passes(scored_passes(run))
    if filled is None:
        return None
    told = WithoutFilled(filled.names, filled.filled, filled.rows)
    if not held:
        return replace(told, why="no evaluation with known answers was seen")
    after = _changed(bench, run, held, "scrambled", (0,), columns=filled.columns)
    if isinstance(after, str):
        return replace(told, why=after)
    kind = held[0].kind
    claimed = score_of(_joined(held), kind)
    return replace(told, metric=kind, claimed=claimed, honest=score_of(after, kind))


def _again(
    bench: Bench,
    run: Run,
    rows: tuple[int, ...],
    taken: tuple[int, ...],
    held: Sequence[Population],
) -> Errors | str:
    """Errors of the same passes in a run with these rows overwritten, or why there are none."""
    return _changed(bench, run, held, "copies", rows, taken=taken)


def _changed(
    bench: Bench,
    run: Run,
    held: Sequence[Population],
    what: str,
    rows: tuple[int, ...],
    **more: Any,
) -> Errors | str:
    if run.sources.place is None:
        return NOT_CHANGED
    change = RowChange(run.sources.place, run.sources.count, rows, what, **more)
    # What was wanted is known from the source: hearing every operator would take twice as long.
    errors = "" if run.sources.by_hand else _errors(bench, run, held, change, answers=True)
    return errors if len(errors) else _errors(bench, run, held, change, journal=True)


def _errors(
    bench: Bench, run: Run, held: Sequence[Population], change: RowChange, **options: Any
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
    met = [_met_again(one, run, second) for one in held]
    if all(met):
        return _joined([one for one in met if one])
    return NOT_FOUND if "journal" in options else ""


def _met_again(held: Population, run: Run, second: Run) -> Population | None:
    """The same pass of another run: validation and test may be alike, one after the other."""
    before, after = (
        [p for p in scored_passes(r) if p.site == held.site and p.rows == held.rows and p.errors]
        for r in (run, second)
    )
    place = [p.hashes for p in before].index(held.hashes)
    return after[place] if len(before) == len(after) else None

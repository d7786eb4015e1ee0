"""Which score of a run is the best of many, chosen by the very rows that it is the score of, and is
what the run ends with.

By the order of events and by values: the scores of rows that were evaluated again and again, the
number that is printed in the end, or the weights that are put back then and scored on these rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sawbones.evidence.limits import evaluation as limits
from sawbones.schema import Run, Site
from sawbones.schema.loaded import Restored
from sawbones.schema.populations import ScoredAgain
from sawbones.stats.distributions import wilson
from sawbones.stats.evaluations import numbers_of_the_end

_MAX_LOSSES = 4  # of one line at one step: more are batches
_FORMS = (1.0, 100.0)


class Beside(NamedTuple):
    """Other held-out rows, which were scored at the same steps and had no part in the choice."""

    rows: int
    score: float  # at the step that was chosen


class Chosen(NamedTuple):
    rows: int
    times: int
    score: float  # the best of them
    last: float  # at the end of training
    steps: tuple[int, ...]  # when it was the best
    put_back: Site | None  # where the weights are that it belongs to; None: it is printed
    beside: Beside | None
    honest: float  # where one half of the rows chooses, and the other half is scored
    upper: float  # end of its interval
    sites: tuple[Site, ...]


def chosen_on_its_rows(run: Run) -> Chosen | None:
    told = run.populations
    held = [one for one in told.again if limits.KNOWN_IN_BATCH.undercut_by(one.known)]
    unknown = any(not p.kind and limits.KNOWN_IN_BATCH.undercut_by(p.known) for p in told.passes)
    tried = [one for one in held if limits.CHOSEN_AMONG.reached_by(len(set(one.steps)))]
    # Rows that are met in the end alone are what the result is read off.
    if told.why or unknown or len(tried) < len(held):
        return None
    return next((found for one in tried if (found := _chosen(run, one, tried)) is not None), None)


def _chosen(run: Run, one: ScoredAgain, tried: Sequence[ScoredAgain]) -> Chosen | None:
    put_back = _put_back(run, one)
    during = one.scores[:-1] if put_back is not None else one.scores
    best, last = max(during), during[-1]
    when = {step for step, score in zip(one.steps, during, strict=False) if score == best}
    if last == best or best == 1 or one.honest is None:
        return None
    if put_back is not None and (put_back.of_step not in when or one.scores[-1] != best):
        return None
    ends = numbers_of_the_end(run)
    if put_back is None and (not _is_printed(ends, best) or _is_printed(ends, last)):
        return None
    others = [other for other in tried if other is not one]
    if any(_is_best(other, when) for other in others) or _has_least_loss(run, when):
        return None  # it may have been chosen by other rows
    apart = [other for other in others if other in [run.populations.again[i] for i in one.apart]]
    shown = [other for other in others if _is_scored_in_the_end(run, one, other)]
    scores = {id(other): _score_at(other, when) for other in apart}
    if shown or any(_is_printed(ends, score) for score in scores.values()):
        return None  # the honest number stands beside it
    beside = [Beside(other.rows, scores[id(other)]) for other in apart if _goes_along(one, other)]
    _, upper = wilson(one.honest * one.rows, one.rows)
    if not beside and best <= upper:
        return None
    return Chosen(
        one.rows,
        len(set(one.steps)),
        best,
        last,
        tuple(sorted(when)),
        put_back.site if put_back is not None else None,
        max(beside, default=None),
        one.honest,
        upper,
        one.sites,
    )


def _put_back(run: Run, one: ScoredAgain) -> Restored | None:
    """Earlier weights that these rows are scored with once training is over."""
    loads = [
        r
        for r in run.loaded_weights
        if r.step >= run.num_steps and not r.is_own and r.of_step is not None
    ]
    if not loads or one.steps[-1] < run.num_steps or loads[-1].of_step == run.num_steps:
        return None
    return loads[-1] if one.scores[-1] == max(one.scores[:-1]) else None


def _is_scored_in_the_end(run: Run, one: ScoredAgain, other: ScoredAgain) -> bool:
    """Once more than in training, as the rows that are reported are."""
    mine, its = (sum(s >= run.num_steps for s in x.steps) for x in (one, other))
    return its > 1 or its > mine


def _is_best(other: ScoredAgain, when: Collection[int]) -> bool:
    """Whether a choice by the score or the loss of other rows would have come to one of these
    steps.
    """
    best, least = max(other.scores), min(other.losses, default=0.0)
    by_score = {s for s, score in zip(other.steps, other.scores, strict=True) if score == best}
    by_loss = {s for s, loss in zip(other.steps, other.losses, strict=False) if loss == least}
    return bool((by_score | by_loss) & set(when))


def _has_least_loss(run: Run, when: Collection[int]) -> bool:
    """Whether a loss that the script computes while it evaluates is the least at one of these
    steps: whose it is, is not known.
    """
    by_place: dict[tuple[Site | None, int], dict[int, float]] = {}
    count: dict[tuple[Site | None, int], int] = {}
    for event in run.of_kind("loss"):
        value = event.data.get("value")
        if event.phase == "eval" and isinstance(value, (int, float)):
            number = count[event.site, event.step] = count.get((event.site, event.step), -1) + 1
            by_place.setdefault((event.site, number), {})[event.step] = float(value)
    batched = {site for (site, _), number in count.items() if number >= _MAX_LOSSES}
    series = [s for (site, _), s in by_place.items() if site not in batched]
    return any(
        limits.CHOSEN_AMONG.reached_by(len(losses)) and min(losses, key=lambda s: losses[s]) in when
        for losses in series
    )


def _score_at(other: ScoredAgain, when: Collection[int]) -> float:
    told = dict(zip(other.steps, other.scores, strict=True))
    return next((told[step] for step in sorted(when) if step in told), float("nan"))


def _goes_along(one: ScoredAgain, other: ScoredAgain) -> bool:
    return set(one.steps) <= set(other.steps)


def _is_printed(ends: Sequence[tuple[float, float]], score: float) -> bool:
    return any(
        limits.SCORE_DIGITS.kept_by(unit / form)
        and limits.PRINTED_AS.kept_by(abs(number - form * score) / unit)
        for number, unit in ends
        for form in _FORMS
    )

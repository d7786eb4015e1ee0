"""Which score a script printed: the share of right answers, or what a usual mistake makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sawbones.evidence.limits import evaluation as limits
from sawbones.schema import Run, Site
from sawbones.schema.evaluation import Node, Scored
from sawbones.stats.evaluations import (
    READS,
    consumers,
    made_by,
    printed_numbers,
    train_losses_called,
)
from sawbones.stats.splits import told_apart

_LOGITS = {"binary_cross_entropy_with_logits", "multilabel_soft_margin_loss", "soft_margin_loss"}
_MIN_EVALUATIONS = 2
_MIN_BATCHES = 3  # of an evaluation, before one of them is said to stand for all
_Form = Callable[[float], float]
_Told = tuple[Scored, float, Mapping[str, float]]  # evaluation, right, by mistake
_FORMS: tuple[_Form, ...] = (lambda v: v, lambda v: 100 * v)

LAST_BATCH = "last batch"
_FIRST_BATCH = "first batch"
HITS_PER_BATCH = "hits over batches"
FULL_BATCHES = "full batches"
PAIRS = "pairs"
BY_COLUMN = "by column"
FIRST_CLASS = "first class"
WHOLE_PART = "whole part"
OTHER_CUT = "other cut"
TRAINING_ROWS = "rows of training"


class Misscored(NamedTuple):
    """A mistake whose result was printed at every evaluation, the right score at none."""

    mistake: str
    steps: tuple[int, ...]
    printed: float  # at the last of them
    right: float
    rows: int
    calls: int
    site: Site | None


def misscored(run: Run, mistakes: Sequence[str]) -> Misscored | None:
    rows = run.evaluation.scored
    trained = train_losses_called(run)
    computed = [(row, *_hypotheses(row, trained, _training_rows(run))) for row in rows]
    told = [(row, right, wrong) for row, right, wrong in computed if right is not None]
    if len(told) < _MIN_EVALUATIONS:
        return None
    for mistake in mistakes:
        if all(mistake in wrong for _, _, wrong in told):
            found = _printed_instead(run, mistake, told)
            if found is not None:
                return found
    return None


class LastAlone(NamedTuple):
    """A number of every batch, of which the last one alone is used."""

    made: Node
    calls: int
    value: float
    steps: tuple[int, ...]


def last_alone(run: Run, everything: Sequence[Node]) -> Iterator[tuple[Node, LastAlone]]:
    """Numbers that are read off once, after the last call of every evaluation, although each call
    made one.
    """
    calls = {p.step: p.calls for p in run.evaluation.passes}
    for node in everything:
        steps = [step for step, _, _ in node.reads]
        if not steps or len(set(steps)) < len(steps) or len(node.read_calls) != len(steps):
            continue
        several = all(
            calls.get(step, 0) >= _MIN_BATCHES and at == calls[step]
            for step, at in zip(steps, node.read_calls, strict=True)
        )
        wanted = sum(calls.get(step, 0) for step in steps)
        for made in made_by(everything, node):
            alone = [n.id for n in consumers(everything, made)] == [node.id]
            if several and alone and made.count == wanted and _is_number(made):
                value = node.reads[-1][1]
                yield node, LastAlone(made, calls[steps[-1]], value, tuple(steps))


def _is_number(node: Node) -> bool:
    return all(not shape for shape in node.result.shapes or ((1,),))


def is_scored(run: Run) -> bool:
    """Evaluations of which answers and labels are known."""
    return bool(run.evaluation.scored)


def _hypotheses(
    row: Scored, trained: set[str], training_rows: int
) -> tuple[float | None, dict[str, float]]:
    """The right score, and those of the mistakes."""
    wrong: dict[str, float] = {}
    made = row.largest
    if row.classes == 1:
        if not trained & {"binary_cross_entropy", *_LOGITS}:
            return None, {}
        made, other = row.over_half, row.over_zero
        if trained & _LOGITS:
            made, other = other, made
        if other is not None and row.whole_part is not None:
            wrong[OTHER_CUT] = other.all
            wrong[WHOLE_PART] = row.whole_part.all
        wrong[FIRST_CLASS] = row.class_0
    else:
        wrong[BY_COLUMN] = row.by_column
    if made is None:
        return None, {}
    if made.pairs is not None:
        wrong[PAIRS] = made.pairs
    if training_rows:
        wrong[TRAINING_ROWS] = made.all * row.rows / training_rows
    if row.calls > 1:
        wrong[LAST_BATCH] = made.batches[-1]
        wrong[_FIRST_BATCH] = made.batches[0]
        hits = made.all * row.rows
        wrong[HITS_PER_BATCH] = hits / row.calls
        wrong[FULL_BATCHES] = hits / (row.calls * row.sizes[1])
    return made.all, wrong


def _printed_instead(run: Run, mistake: str, told: Sequence[_Told]) -> Misscored | None:
    for form in _FORMS:
        units = [_unit_of_mistake(run, mistake, form, one) for one in told]
        if None in units:
            continue
        apart = [
            (row, form(right), form(wrong[mistake]), unit)
            for (row, right, wrong), unit in zip(told, units, strict=True)
            if unit is not None
            and limits.PRINTED_APART.passed_by(abs(form(wrong[mistake]) - form(right)) / unit)
        ]
        digits = sum(float(np.log10(form(1) / unit)) for *_, unit in apart)
        if not apart or not _may_be_measured({wrong for _, _, wrong, _ in apart}, form):
            continue
        if len(apart) >= _MIN_EVALUATIONS and limits.DIGITS_THAT_AGREE.reached_by(digits):
            row, right, wrong, _ = apart[-1]
            return Misscored(
                mistake,
                tuple(row.step for row, *_ in apart),
                wrong,
                right,
                row.rows,
                row.calls,
                _left_at(run),
            )
    return None


def _may_be_measured(printed: set[float], form: _Form) -> bool:
    """A number that never changes may be a setting; settings are round."""
    (first, *others) = printed
    twentieths = 20 * first / form(1)
    return bool(others) or limits.PRINTED_AS.passed_by(100 * abs(twentieths - round(twentieths)))


def _unit_of_mistake(run: Run, mistake: str, form: _Form, told: _Told) -> float | None:
    """The unit of the number that was printed in place of the right one; None where the mistake's
    was not printed, or the right one too.
    """
    row, right, wrong = told
    # 1.000 is the right score of a perfect model, and also 1 %: a number that stands for the right
    # score in the other form tells nothing.
    others = [other(right) for other in _FORMS if other is not form]
    numbers = [
        (number, unit)
        for number, unit in printed_numbers(run, row.step)
        if not any(limits.PRINTED_AS.kept_by(abs(number - other) / unit) for other in others)
    ]
    unit = _unit(numbers, form(wrong[mistake]))
    if unit is None or _is_there(numbers, form(right), form(wrong[mistake])):
        return None
    first = wrong.get(_FIRST_BATCH, wrong[mistake])
    if (
        mistake == LAST_BATCH
        and first != wrong[mistake]
        and _unit(numbers, form(first)) is not None
    ):
        return None  # the score of every batch is printed, of the last one too
    return unit


def _unit(numbers: Sequence[tuple[float, float]], value: float) -> float | None:
    """The unit of the last digit of the number that this value is printed as."""
    found = [
        unit for number, unit in numbers if limits.PRINTED_AS.kept_by(abs(number - value) / unit)
    ]
    return min(found, default=None)


def _is_there(numbers: Sequence[tuple[float, float]], right: float, wrong: float) -> bool:
    """The right score is printed too, by a number that does not stand for the wrong one."""
    return any(
        limits.PRINTED_AS.kept_by(abs(number - right) / unit)
        and not limits.PRINTED_AS.kept_by(abs(number - wrong) / unit)
        for number, unit in numbers
    )


def _training_rows(run: Run) -> int:
    trained, _ = told_apart(run)
    return len({row for batch in trained for row in batch.fingerprints})


def _left_at(run: Run) -> Site | None:
    """Where the answers leave torch."""
    places = [n for n in run.evaluation.nodes if n.op in READS and "output" in n.roles]
    return places[-1].site if places else None

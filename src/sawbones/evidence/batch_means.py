"""Means of batches that are added up and then divided by the wrong number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sawbones.evidence.limits import TINY
from sawbones.evidence.limits import evaluation as limits
from sawbones.schema import Run
from sawbones.schema.evaluation import Node
from sawbones.stats.evaluations import printed_numbers
from sawbones.stats.splits import told_apart

_MIN_EVALUATIONS = 2
OVER_SAMPLES = "means over samples"
OVER_BATCHES = "sums over batches"


class Misdivided(NamedTuple):
    """What was printed at every evaluation, the right mean at none."""

    mistake: str
    steps: tuple[int, ...]
    printed: float  # at the last of them
    right: float
    samples: int
    batches: int


class _Told(NamedTuple):
    step: int
    right: float
    wrong: Mapping[str, float]
    samples: int
    batches: int
    numbers: Sequence[tuple[float, float]]  # printed, each with the unit of its last digit


def misdivided(run: Run, node: Node) -> Misdivided | None:
    """Of the means that are read off at this place, one for every batch."""
    told = [
        one for step in dict.fromkeys(s for s, _, _ in node.reads) for one in _of(run, node, step)
    ]
    if len(told) < _MIN_EVALUATIONS:
        return None
    for mistake in (OVER_SAMPLES, OVER_BATCHES):
        units = [_unit(one, mistake) for one in told]
        if None in units:
            continue
        digits = sum(
            float(np.log10(max(abs(one.wrong[mistake]) / unit, 1)))
            for one, unit in zip(told, units, strict=True)
            if unit is not None
        )
        values = {one.wrong[mistake] for one in told}
        if len(values) > 1 and limits.DIGITS_THAT_AGREE.reached_by(digits):
            last = told[-1]
            steps = tuple(one.step for one in told)
            return Misdivided(
                mistake, steps, last.wrong[mistake], last.right, last.samples, last.batches
            )
    return None


def _of(run: Run, node: Node, step: int) -> list[_Told]:
    values = np.array([value for at, value, _ in node.reads if at == step])
    sizes = _batch_sizes(run).get(step, [])
    numbers = printed_numbers(run, step)
    if len(values) < 2 or len(sizes) != len(values) or not numbers:
        return []
    rows = np.array(sizes, float)
    right = float(np.average(values, weights=rows))
    wrong = {
        OVER_SAMPLES: float(values.sum() / rows.sum()),
        OVER_BATCHES: float((values * rows).sum() / len(values)),
    }
    return [_Told(step, right, wrong, int(rows.sum()), len(values), numbers)]


def _batch_sizes(run: Run) -> dict[int, list[int]]:
    """Samples of every batch of each evaluation, by its step."""
    evaluated = [batch for batch in told_apart(run)[1] if batch.fingerprints]
    loaded = [batch for batch in evaluated if batch.source != "model"]
    found: dict[int, list[int]] = {}
    for batch in loaded or evaluated:
        found.setdefault(batch.step, []).append(len(batch.fingerprints))
    return found


def _unit(one: _Told, mistake: str) -> float | None:
    """The unit of the number that the mistake's result was printed as; None where it was not
    printed, prints like the right one, or the right one is printed too.
    """
    wrong = one.wrong[mistake]
    if any(_prints(number, unit, one.right) for number, unit in one.numbers):
        return None
    found = [
        unit
        for number, unit in one.numbers
        if _prints(number, unit, wrong)
        and limits.PRINTED_APART.passed_by(abs(wrong - one.right) / max(unit, TINY))
    ]
    return min(found, default=None)


def _prints(number: float, unit: float, value: float) -> bool:
    return limits.PRINTED_AS.kept_by(abs(number - value) / unit)

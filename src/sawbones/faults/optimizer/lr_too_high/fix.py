"""The learning rate that healed, where the number is written."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.numbers import rescaled_rate
from sawbones.fixing.recipes import Case, Change

FACTORS = (0.1, 0.01)  # those of the trial, for a finding that was proven without it


def fix(case: Case) -> Iterator[Change]:
    verdict = case.finding.verdict
    healed = verdict.details.get("factor") if verdict is not None else None
    for factor in (float(healed),) if healed else FACTORS:
        yield from rescaled_rate(case, factor)

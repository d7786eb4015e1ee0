"""The learning rate that healed, where the number is written."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.numbers import rescaled_rate
from sawbones.fixing.recipes import Case, Change

FACTORS = (10.0, 100.0)  # those of the differential, for a finding that was made without it


def fix(case: Case) -> Iterator[Change]:
    verdict = case.finding.verdict
    healed = verdict.details.get("factor") if verdict is not None else None
    known = healed or case.finding.params.get("factor")
    for factor in (known,) if known else FACTORS:
        yield from rescaled_rate(case, float(factor))

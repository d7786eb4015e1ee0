"""The learning rate that healed, where the number is written."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.numbers import rescaled_rate
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    yield from rescaled_rate(case, float(case.finding.params.get("factor", 100.0)))

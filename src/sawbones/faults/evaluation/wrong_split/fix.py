"""Which rows are for evaluation, a person decides."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.recipes import Case, Decide

CHOICES = (
    "Decide which rows are held out: an own split of the training rows (training gets smaller), a "
    "set that is there already (nothing lost), or cross-validation (k times the time). The score "
    "so far says how well the training rows are known, and nothing about others."
)


def fix(case: Case) -> Iterator[Decide]:
    yield Decide(CHOICES)

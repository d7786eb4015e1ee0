"""Which unit of a column is the right one, a person decides."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.recipes import Case, Decide

CHOICES = (
    "Decide which side of the column is right: convert the new rows back where they are made "
    "(nothing is trained again), or convert the training rows and train again."
)


def fix(case: Case) -> Iterator[Decide]:
    yield Decide(CHOICES)

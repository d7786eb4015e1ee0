"""Whether the old rows still hold, a person decides."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.recipes import Case, Decide

CHOICES = (
    "Decide whether the old rows still hold: train on recent rows alone (fewer rows), weigh them "
    "by age (one more setting), or train again on a schedule (work that stays)."
)


def fix(case: Case) -> Iterator[Decide]:
    yield Decide(CHOICES)

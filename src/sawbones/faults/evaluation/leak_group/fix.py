"""Which groups to keep apart, a person decides."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.recipes import Case, Decide

CHOICES = (
    "Decide what must be new at use: if whole groups (persons, devices, documents) are, split by "
    "group (the score falls to what use will show); if each group is known then, the split is "
    "right as it is, and the report may be told so with an ignore comment."
)


def fix(case: Case) -> Iterator[Decide]:
    yield Decide(CHOICES)

"""What a group is owed, a person decides."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.recipes import Case, Decide

CHOICES = (
    "Decide what the group is owed: more rows of it (costs labels), more weight in the loss (others "
    "get a little worse), a model of its own (two to keep), or no answer for it."
)


def fix(case: Case) -> Iterator[Decide]:
    yield Decide(CHOICES)

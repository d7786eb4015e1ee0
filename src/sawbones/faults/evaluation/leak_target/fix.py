"""Whether a column is known at use, a person decides."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.recipes import Case, Decide

CHOICES = (
    "Decide whether this column is known when the model is used: if not, drop it from the inputs "
    "(the score falls to what use will show); if it is, it may stay, and the target is close to "
    "being known without a model."
)


def fix(case: Case) -> Iterator[Decide]:
    yield Decide(CHOICES)

"""Where texts begin and end, a person decides."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.recipes import Case, Decide

CHOICES = (
    "Decide how a text ends: put the end marker behind every text before it is padded (the model "
    "learns to stop), and mask padding by length, not by the id of a marker that also ends texts."
)


def fix(case: Case) -> Iterator[Decide]:
    yield Decide(CHOICES)

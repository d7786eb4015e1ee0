"""What to do with samples that hold nothing, a person decides."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.recipes import Case, Decide

CHOICES = (
    "Decide what an empty or constant sample is: dropped where the data are loaded (rows are lost, "
    "and the count changes), repaired at its source (the only way that keeps them), or kept with "
    "an average that leaves it out (clamp_min(1) in the divisor)."
)


def fix(case: Case) -> Iterator[Decide]:
    yield Decide(CHOICES)

"""What the sample behind a spike is worth, a person decides."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.recipes import Case, Decide

CHOICES = (
    "Decide what the sample is worth: wrong data (drop or correct it where it is loaded; nothing "
    "else changes), or rare and right (clip the gradient norm or use a robust loss such as "
    "smooth_l1; every large error then counts less)."
)


def fix(case: Case) -> Iterator[Decide]:
    yield Decide(CHOICES)

"""What an augmentation may change, a person decides."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.recipes import Case, Decide

CHOICES = (
    "Decide what the label depends on: leave this augmentation out (nothing is lost but variety), "
    "let it change the label too (flip left and right together with the picture), or make it "
    "weaker until the label can still be told."
)


def fix(case: Case) -> Iterator[Decide]:
    yield Decide(CHOICES)

"""Which class rates are to be expected, a person decides."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.recipes import Case, Decide

CHOICES = (
    "Decide which class rates to expect: move the scores by the logarithm of new over old rates (no "
    "training, needs the rates), move the threshold (the same for two classes), or train again on "
    "rows of the new rates."
)


def fix(case: Case) -> Iterator[Decide]:
    yield Decide(CHOICES)

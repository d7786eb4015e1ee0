"""Which preparation is the right one, a person decides."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.recipes import Case, Decide

CHOICES = (
    "Decide which preparation is the right one, and call it from one function in training and "
    "serving: if that of training, nothing is trained again; if that of serving, the model is."
)


def fix(case: Case) -> Iterator[Decide]:
    yield Decide(CHOICES)

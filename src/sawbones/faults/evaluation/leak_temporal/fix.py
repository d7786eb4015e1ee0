"""Where the past ends, a person decides."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.recipes import Case, Decide

CHOICES = (
    "Decide which moment separates known from unknown: train before it and evaluate after it (the "
    "score falls to what a forecast can do, and the latest rows are not trained on), or keep the "
    "shuffled split where the model only fills gaps between known moments."
)


def fix(case: Case) -> Iterator[Decide]:
    yield Decide(CHOICES)

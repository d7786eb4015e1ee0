"""Which numbering of tokens is the right one, a person decides."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.recipes import Case, Decide

CHOICES = (
    "Decide on one vocabulary, that of the training texts, and use it for evaluation and use alike: "
    "words that it lacks become the unknown token. Trained weights keep their meaning only with "
    "the numbering they were trained on."
)


def fix(case: Case) -> Iterator[Decide]:
    yield Decide(CHOICES)

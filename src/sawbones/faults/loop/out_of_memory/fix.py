"""What to give up for memory, a person decides."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.recipes import Case, Decide

CHOICES = (
    "Decide what to give up: smaller batches with accumulation (the same gradients, more time a "
    "step); bfloat16 autocast (half of the activations, fewer digits); activation checkpointing "
    "(about a third more time); a shorter sequence or a smaller picture (the task changes)."
)


def fix(case: Case) -> Iterator[Decide]:
    yield Decide(CHOICES)

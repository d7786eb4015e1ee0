"""What to give up for memory, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide what to give up: smaller batches with accumulation (the same gradients, more time a "
    "step); bfloat16 autocast (half of the activations, fewer digits); activation checkpointing "
    "(about a third more time); a shorter sequence or a smaller picture (the task changes)."
)

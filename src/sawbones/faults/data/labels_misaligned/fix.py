"""Which order is the right one, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide which order is the right one: shuffle inputs and labels by one and the same index, or "
    "neither. If the file itself is out of order it has to be made again: no change of the script "
    "finds the labels back."
)

"""Where texts begin and end, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide how a text ends: put the end marker behind every text before it is padded (the model "
    "learns to stop), and mask padding by length, not by the id of a marker that also ends texts."
)

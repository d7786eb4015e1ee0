"""What to do with samples that hold nothing, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide what an empty or constant sample is: dropped where the data are loaded (rows are lost, "
    "and the count changes), repaired at its source (the only way that keeps them), or kept with "
    "an average that leaves it out (clamp_min(1) in the divisor)."
)

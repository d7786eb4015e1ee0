"""What the sample behind a spike is worth, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide what the sample is worth: wrong data (drop or correct it where it is loaded; nothing "
    "else changes), or rare and right (clip the gradient norm or use a robust loss such as "
    "smooth_l1; every large error then counts less)."
)

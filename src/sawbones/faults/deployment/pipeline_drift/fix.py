"""Which unit of a column is the right one, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide which side of the column is right: convert the new rows back where they are made "
    "(nothing is trained again), or convert the training rows and train again."
)

"""What a group is owed, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide what the group is owed: more rows of it (costs labels), more weight in the loss (others "
    "get a little worse), a model of its own (two to keep), or no answer for it."
)

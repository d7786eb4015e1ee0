"""Which groups to keep apart, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide what must be new at use: if whole groups (persons, devices, documents) are, split by "
    "group (the score falls to what use will show); if each group is known then, the split is "
    "right as it is, and the report may be told so with an ignore comment."
)

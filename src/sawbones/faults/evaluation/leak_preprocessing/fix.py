"""Which rows statistics may be made of: those that are trained on."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide which rows are known when the model is made, split first, and make mean, spread, "
    "vocabulary or selection of those alone; then apply them to all. The score falls to what use "
    "will show; nothing else is lost."
)

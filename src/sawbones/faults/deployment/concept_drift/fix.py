"""Whether the old rows still hold, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide whether the old rows still hold: train on recent rows alone (fewer rows), weigh them "
    "by age (one more setting), or train again on a schedule (work that stays)."
)

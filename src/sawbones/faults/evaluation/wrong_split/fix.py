"""Which rows are for evaluation, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide which rows are held out: an own split of the training rows (training gets smaller), a "
    "set that is there already (nothing lost), or cross-validation (k times the time). The score "
    "so far says how well the training rows are known, and nothing about others."
)

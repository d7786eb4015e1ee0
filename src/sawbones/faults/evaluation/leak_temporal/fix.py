"""Where the past ends, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide which moment separates known from unknown: train before it and evaluate after it (the "
    "score falls to what a forecast can do, and the latest rows are not trained on), or keep the "
    "shuffled split where the model only fills gaps between known moments."
)

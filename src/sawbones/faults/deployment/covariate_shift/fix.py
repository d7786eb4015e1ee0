"""Where the model is to be used, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide where the model is used: collect labelled rows from there (costs labels, and is the "
    "only full cure), weigh the training rows towards them (noisier), or refuse rows that lie "
    "outside of what was trained on (some go unanswered)."
)

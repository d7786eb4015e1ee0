"""Which rows to keep apart, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide on which side the shared rows belong: out of the training set (it gets smaller, the "
    "score stays comparable with others on that split) or out of the evaluation (training keeps "
    "everything, old scores no longer compare). Repeat the split after the rows are made unique."
)

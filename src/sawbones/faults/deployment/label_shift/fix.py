"""Which class rates are to be expected, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide which class rates to expect: move the scores by the logarithm of new over old rates (no "
    "training, needs the rates), move the threshold (the same for two classes), or train again on "
    "rows of the new rates."
)

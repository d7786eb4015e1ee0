"""Which preparation is the right one, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide which preparation is the right one, and call it from one function in training and "
    "serving: if that of training, nothing is trained again; if that of serving, the model is."
)

"""What an augmentation may change, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide what the label depends on: leave this augmentation out (nothing is lost but variety), "
    "let it change the label too (flip left and right together with the picture), or make it "
    "weaker until the label can still be told."
)

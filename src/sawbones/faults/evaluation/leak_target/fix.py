"""Whether a column is known at use, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide whether this column is known when the model is used: if not, drop it from the inputs "
    "(the score falls to what use will show); if it is, it may stay, and the target is close to "
    "being known without a model."
)

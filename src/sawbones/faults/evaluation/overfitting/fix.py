"""How to hold a model back that memorises, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide how to hold it back: stop at the best evaluation (costs nothing, and no more is "
    "learned); more data or augmentation (work, and the only way to a better model); dropout or "
    "weight decay (two settings to search); a smaller model (less to memorise, and less to learn)."
)

"""Which numbering of tokens is the right one, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide on one vocabulary, that of the training texts, and use it for evaluation and use alike: "
    "words that it lacks become the unknown token. Trained weights keep their meaning only with "
    "the numbering they were trained on."
)

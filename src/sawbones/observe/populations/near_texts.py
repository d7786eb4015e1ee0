"""Evaluated texts that are nearly trained ones: the same words but for a few, in another order, with
other punctuation. Read from the ids that the model is given, whatever made them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sawbones.observe.populations.judged import Judged
from sawbones.observe.populations.scores import score_of
from sawbones.observe.populations.words import BUCKETS, LEAST_WORDS, Bags
from sawbones.schema.populations import DerivedRows

MAX_EVALUATED = 300
LEAST_TRAINED, LEAST_EVALUATED = 100, 40
MOST_COMMON = 0.5  # share of the texts that hold an id: padding and marks, no word
NEAR = 0.7  # share of the words of two texts that both have
FAR = 0.4  # the same for the tenth-nearest: texts of one template are near to many others
TENTH = 10


def near_texts(one: Judged, bags: Bags, trained: Bags) -> DerivedRows | None:
    """How many texts of this pass have a near copy among the trained ones; None where texts are too
    few or too short to say.
    """
    if len(bags) != len(one.hashes):
        return None
    known = np.unique(trained, axis=0)
    words = known.mean(0) < MOST_COMMON
    known, new = known[:, words], bags[:, words]
    short = np.median(known.sum(1)) < LEAST_WORDS if len(known) else True
    if len(known) < LEAST_TRAINED or len(new) < LEAST_EVALUATED or short:
        return None
    picked = np.linspace(0, len(new) - 1, min(MAX_EVALUATED, len(new))).astype(np.int64)
    a, b = new[picked].astype(np.float32), known.astype(np.float32)
    both = a @ b.T
    either = a.sum(1)[:, None] + b.sum(1)[None, :] - both
    nearest = np.sort(both / np.maximum(either, 1), axis=1)
    near = (nearest[:, -1] >= NEAR) & (nearest[:, -TENTH] <= FAR)
    told = DerivedRows(len(picked), int(near.sum()), one.kind)
    if one.errors is None or not near.any() or near.all():
        return told
    errors = one.errors[picked]
    return replace(
        told, score=score_of(errors, one.kind), new_score=score_of(errors[~near], one.kind)
    )


def joined(kept: Sequence[Bags]) -> Bags:
    return np.concatenate(kept) if kept else np.zeros((0, BUCKETS), np.bool_)

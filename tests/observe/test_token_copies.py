"""Rows of tokens met again are told apart: copies of long records, and what comes about twice by
itself.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from sawbones.observe.signals.token_copies import TokenCopies


def drawn(kind: str, rng: random.Random) -> list[int]:
    if kind == "rule":
        start, stride = rng.randrange(20), rng.randint(1, 5)
        return [(start + i * stride) % 20 for i in range(12)]
    if kind == "period":
        return [rng.randrange(10) for _ in range(3)] * 4
    if kind == "template":
        return [*range(7), rng.randrange(7, 17), rng.randrange(7, 17), 17]
    return [rng.randrange(40) for _ in range(12)]


@pytest.mark.parametrize("kind", ["record", "rule", "period", "template"])
def test_only_copies_of_records_are_far_from_all_other_rows(kind: str) -> None:
    rng = random.Random(0)
    rows = [drawn(kind, rng) for _ in range(600)]
    if kind == "record":
        rows += rows[:300]
    rng.shuffle(rows)
    log = TokenCopies()
    for phase, part in (("train", rows[:450]), ("eval", rows[450:])):
        ids = np.array(part)
        log.saw(phase, ids, np.zeros(ids.shape, bool))
    found = log.record()
    if kind == "record":
        assert found is not None and found.copies >= 50 and found.beside == 0.0
    else:
        assert found is None or found.beside > 0.5
